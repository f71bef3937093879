-- Settings of the server that matter to durability, speed and room.
SELECT s.name, current_setting(s.name, true)
FROM pg_settings s
WHERE s.name IN ('archive_mode', 'autovacuum', 'autovacuum_max_workers',
	'checkpoint_timeout', 'default_transaction_read_only',
	'effective_cache_size', 'full_page_writes', 'fsync', 'hot_standby',
	'idle_in_transaction_session_timeout', 'lock_timeout',
	'maintenance_work_mem', 'max_connections', 'max_prepared_transactions',
	'max_slot_wal_keep_size', 'max_wal_size', 'port', 'server_encoding',
	'server_version', 'shared_buffers', 'statement_timeout',
	'synchronous_commit', 'synchronous_standby_names', 'TimeZone',
	'wal_level', 'wal_sync_method', 'work_mem')
ORDER BY s.name
