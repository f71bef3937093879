-- PN_PARTITION_MONTHS ahead.
SELECT paynotify.make_partitions(now() + interval '24 months')
