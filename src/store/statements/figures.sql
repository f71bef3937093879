-- PN_CONSUMERS_TOLD_MAX consumers. In one message, so one transaction: the
-- timeout is of this statement.
SET LOCAL statement_timeout = '2s';
SELECT figure, coalesce(consumer, ''), value FROM paynotify.figures(256)
