#!/bin/sh
# Makes the secrets of compose.yaml in deploy/compose/secrets, once. Back up root_secret apart from the database: every server
# key comes from it.
set -eu

# The folder is closed to other users. The files are not, as a container sees them with their modes, under a user of its own.
dir=$(dirname "$0")/secrets
mkdir -m 700 "$dir"
cd "$dir"
umask 022

for name in postgres_password owner_password server_password grafana_password; do
  openssl rand -hex 32 > "$name"
done
openssl rand -base64 32 > root_secret
echo "postgres://keyhold_owner:$(cat owner_password)@postgres:5432/keyhold" > migrate_url
echo "postgres://keyhold:$(cat server_password)@postgres:5432/keyhold" > database_url

# For a first look. Put a certificate of your own in its place.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 -subj /CN=localhost \
  -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout tls.key -out tls.crt 2> /dev/null
chmod 644 tls.key
