# grpcurl without proto files: it uses server reflection only. GRPCURL is the program.
set -euo pipefail
. "${BASH_SOURCE[0]%/*}/../tap.sh"
address=${KEYHOLD_URL#http://}

# grpcurl expands the token from the environment, so that it is not an argument.
grpcurl() { "$GRPCURL" -plaintext -expand-headers -H 'authorization: Bearer ${KEYHOLD_TOKEN}' "$@" 2>&1; }

# call METHOD: sends the JSON on stdin.
call() { grpcurl -d @ "$address" "keyhold.v2alpha1.$1"; }

services=$(grpcurl "$address" list || true)
for service in keyhold.v2alpha1.{ApiKeys,DerivedKeys,ImportedApiKeys,IssuedApiKeys,SelfService}Service grpc.health.v1.Health; do
  holds "list: $service" "$service" "$(grep -x "$service" <<<"$services" || echo "$services")"
done

described=$(grpcurl "$address" describe keyhold.v2alpha1.IssuedApiKeysService.RotateIssuedApiKey || true)
holds 'describe a method' 1 "$(grep -c 'returns ( .keyhold.v2alpha1.RotateIssuedApiKeyResponse )' <<<"$described" || echo "$described")"
described=$(grpcurl "$address" describe keyhold.v2alpha1.VerifyApiKeyRequest || true)
holds 'describe a message' 1 "$(grep -c 'string credential = 1' <<<"$described" || echo "$described")"

answer=$(call IssuedApiKeysService/CreateIssuedApiKey <<<'{"name": "grpcurl", "actor_id": "grpcurl", "scopes": ["read"]}' || true)
secret=$(pick .secret <<<"$answer" 2>&1 || true) key_id=$(pick .issuedApiKey.keyId <<<"$answer" 2>&1 || true)
holds 'issue' KEY_STATUS_ACTIVE "$(pick .issuedApiKey.status <<<"$answer")"
verdict=$(call ApiKeysService/VerifyApiKey <<<"{\"credential\": \"$secret\"}")
holds 'verify' "true $key_id" "$(pick .isValid .keyId <<<"$verdict")"
call ApiKeysService/RevokeApiKey <<<"{\"key_id\": \"$key_id\", \"reason\": \"REVOCATION_REASON_SUPERSEDED\"}" >/dev/null
verdict=$(call ApiKeysService/VerifyApiKey <<<"{\"credential\": \"$secret\"}")
holds 'verify after revocation' VERIFICATION_ERROR_REVOKED "$(pick .errorCode <<<"$verdict")"

error=$(call IssuedApiKeysService/CreateIssuedApiKey <<<'{"name": "grpcurl"}' || true)
holds 'an error has its details' 2 "$(grep -cE '"reason": "INVALID_ARGUMENT"|"field": "actor_id"' <<<"$error" || echo "$error")"
set=../../gen/keyhold.binpb
described=$("$GRPCURL" -protoset "$set" describe keyhold.v2alpha1.VerifyApiKeyRequest 2>&1 || true)
holds 'the descriptor set has the comments' 1 "$(grep -c 'Any credential, 1 to 8192 bytes' <<<"$described" || echo "$described")"
verdict=$(grpcurl -use-reflection=false -protoset "$set" -d '{"credential": "never imported"}' "$address" keyhold.v2alpha1.ApiKeysService/VerifyApiKey)
holds 'a call with the descriptor set' VERIFICATION_ERROR_NOT_FOUND "$(pick .errorCode <<<"$verdict")"
plan
