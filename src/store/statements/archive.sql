-- PN_ARCHIVE_KEYS_MAX keys at a time.
SELECT paynotify.archive_expired_keys(500)
