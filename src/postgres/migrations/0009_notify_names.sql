-- Renames the functions behind the triggers of 0004 to what they do. Nodes of release 0.1 run on meanwhile: no node calls these functions by
-- name, and what they send stays the same.
ALTER FUNCTION tell_key_changed() RENAME TO notify_key_changed;
ALTER FUNCTION tell() RENAME TO notify_change;

-- The body names its transition table, so function and trigger are replaced together.
CREATE FUNCTION notify_raw_keys_imported() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('keyhold_changes', 'digests ' || string_agg(encode(digest, 'hex'), ','))
  FROM (SELECT digest, (row_number() OVER () - 1) / 100 AS part FROM added WHERE kind = 'imported') AS imported
  GROUP BY part;
  RETURN NULL;
END
$$;
DROP TRIGGER raw_keys_came ON api_keys;
CREATE TRIGGER raw_keys_imported AFTER INSERT ON api_keys
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION notify_raw_keys_imported();
DROP FUNCTION tell_raw_keys_came();
