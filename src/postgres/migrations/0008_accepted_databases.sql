-- Databases that an operator has accepted although they lack changes that were durable (`keyhold cluster accept-database`): a server
-- that refuses this database takes it from the first row on that is later than what it knows of. Of release 0.2.
CREATE TABLE accepted_databases (
  system_identifier bigint NOT NULL,
  timeline integer NOT NULL,
  accept_time timestamptz NOT NULL DEFAULT clock_timestamp()
);
