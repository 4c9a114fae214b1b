-- Run once by the image of PostgreSQL, when its volume is empty. Neither role is a superuser: one owns the schema and brings it up to
-- date, and the servers have the other, which gets its rights on the tables from `keyhold migrate --grant-to keyhold`.
-- psql reads the passwords from files, so that they are in no list of arguments.
\set owner_password `cat /run/secrets/owner_password`
\set server_password `cat /run/secrets/server_password`

CREATE ROLE keyhold_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE keyhold LOGIN PASSWORD :'server_password';

CREATE DATABASE keyhold OWNER keyhold_owner;
REVOKE ALL ON DATABASE keyhold FROM PUBLIC;
GRANT CONNECT ON DATABASE keyhold TO keyhold;
