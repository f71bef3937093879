-- The verifying keys of this configuration, once each for ever.
INSERT INTO paynotify.verifying_keys (fingerprint, pem)
SELECT unnest($1::bytea[]), unnest($2::text[])
ORDER BY 1
ON CONFLICT DO NOTHING
