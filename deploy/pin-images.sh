#!/bin/sh
# Pins the images of docker/Dockerfile and compose/compose.yaml to the current digest of each tag. Run it again to
# update them. Needs docker with buildx and access to the registries. Changes nothing unless it finds every digest.
set -eu
cd "$(dirname "$0")"

files="docker/Dockerfile compose/compose.yaml"
edits=$(mktemp)
trap 'rm -f "$edits"' EXIT

# shellcheck disable=SC2086
for image in $(sed -nE 's/^(ARG NODE_IMAGE=| +image: )([^@ ]+:[^@ ]+).*$/\2/p' $files | sort -u); do
  digest=$(docker buildx imagetools inspect "$image" --format '{{.Manifest.Digest}}')
  echo "$digest" | grep -qxE 'sha256:[0-9a-f]{64}' || { echo "$image: no digest but '$digest'" >&2; exit 1; }
  printf 's#^(ARG NODE_IMAGE=| +image: )%s(@.*)?$#\\1%s@%s#\n' "$image" "$image" "$digest" >> "$edits"
  echo "$image@$digest"
done

for file in $files; do
  sed -E -f "$edits" "$file" > "$file.pinned"
  cat "$file.pinned" > "$file"
  rm "$file.pinned"
done
