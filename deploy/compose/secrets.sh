#!/bin/sh
# Creates the secrets of compose.yaml in deploy/compose/secrets, once. Back up root_secret separately from the database: all server
# keys are derived from it.
set -eu

# The folder is private. The files are readable by others because a container sees their modes and runs as another user.
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

# A self-signed certificate to try it out. Replace it.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 365 -subj /CN=localhost \
  -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout tls.key -out tls.crt 2> /dev/null
chmod 644 tls.key
