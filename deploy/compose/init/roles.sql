-- The PostgreSQL image runs this once, when its volume is empty. Neither role is a superuser: one owns and migrates the schema,
-- the servers use the other, which gets its privileges on the tables from `keyhold migrate --grant-to keyhold`.
-- psql reads the passwords from files, so that they are not visible in argument lists.
\set owner_password `cat /run/secrets/owner_password`
\set server_password `cat /run/secrets/server_password`

CREATE ROLE keyhold_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE keyhold LOGIN PASSWORD :'server_password';

CREATE DATABASE keyhold OWNER keyhold_owner;
REVOKE ALL ON DATABASE keyhold FROM PUBLIC;
GRANT CONNECT ON DATABASE keyhold TO keyhold;
