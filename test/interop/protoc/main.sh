# Compiles proto/ with each generator that is part of protoc, with no other folder: the API and what it imports. The proto of
# Envoy's ext_authz is for the server. PROTOC is the program.
set -euo pipefail
. "${BASH_SOURCE[0]%/*}/../tap.sh"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cd ../../proto
all=$(find . -name '*.proto' -printf '%P ')
api=$(find keyhold google buf -name '*.proto' -printf '%H/%P ')
# protoc has no PHP for the closed enums of proto2.
php=${api//buf\/validate\/validate.proto /}

# compiles GENERATOR FILES WANTED IN: one of the generated files has this line.
compiles() {
  mkdir "$out/$1"
  problem=$("$PROTOC" -I . "--${1}_out=$out/$1" $2 2>&1) || true
  holds "$1: compiles" '' "$problem"
  holds "$1: $3" "$3" "$(grep -oF -- "$3" "$out/$1/$4" 2>&1 | head -1)"
}

compiles cpp "$all" 'namespace v2alpha1' keyhold/v2alpha1/api_keys.pb.h
compiles csharp "$api" 'namespace Keyhold.V2Alpha1' ApiKeys.cs
compiles java "$api" 'package dev.keyhold.v2alpha1;' dev/keyhold/v2alpha1/VerifyApiKeyRequest.java
compiles kotlin "$api" 'package dev.keyhold.v2alpha1;' dev/keyhold/v2alpha1/VerifyApiKeyRequestKt.kt
compiles objc "$api" '@interface KHDVerifyApiKeyRequest' keyhold/v2alpha1/ApiKeys.pbobjc.h
compiles php "$php" 'namespace Keyhold\V2alpha1;' Keyhold/V2alpha1/VerifyApiKeyRequest.php
compiles pyi "$api" 'class VerifyApiKeyRequest' keyhold/v2alpha1/api_keys_pb2.pyi
compiles python "$api" 'keyhold.v2alpha1.api_keys_pb2' keyhold/v2alpha1/api_keys_pb2.py
compiles ruby "$api" 'module V2alpha1' keyhold/v2alpha1/api_keys_pb.rb

"$PROTOC" --descriptor_set_in=../gen/keyhold.binpb "--descriptor_set_out=$out/again.binpb" keyhold/v2alpha1/api_keys.proto
holds 'protoc reads the descriptor set' yes "$(test -s "$out/again.binpb" && echo yes)"
plan
