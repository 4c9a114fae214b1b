# curl on the REST paths. KEYHOLD_URL is the server, KEYHOLD_TOKEN an admin token, KEYHOLD_CA_FILE the trusted certificate.
# Neither the token nor a secret is passed as an argument, which any user of the machine could read.
set -euo pipefail
. "${BASH_SOURCE[0]%/*}/../tap.sh"

# call METHOD PATH [OPTION…]: sends the JSON on stdin, if the method has a body, with the admin token.
call() { send "$@" --header @<(printf 'Authorization: Bearer %s' "$KEYHOLD_TOKEN"); }

# send METHOD PATH [OPTION…]: the same without a token. Prints the body, then the status on a separate line.
send() {
  local method=$1 path=$2 body=()
  shift 2
  [[ $method == GET || $method == DELETE ]] || body=(--header 'Content-Type: application/json' --data @-)
  curl --silent --show-error ${KEYHOLD_CA_FILE:+--cacert "$KEYHOLD_CA_FILE"} --write-out '\n%{http_code}' \
    --request "$method" "$KEYHOLD_URL/v2alpha1$path" "${body[@]}" "$@"
}

body() { sed '$d' <<<"$answer"; }
status() { tail -n 1 <<<"$answer"; }
say() { body | pick "$@"; }

# verdicts CREDENTIAL…: prints the verdicts on all of them, from one batch.
verdicts() {
  local requests
  requests=$(printf ',{"credential": "%s"}' "$@")
  call POST /admin/apiKeys:batchVerify <<<"{\"requests\": [${requests:1}]}" | sed '$d' |
    pick '.results.map((one) => one.is_valid ? "valid" : one.error_code).join(" ")'
}

actor="curl-$RANDOM$RANDOM"
answer=$(call POST /admin/issuedApiKeys <<<"{\"name\": \"curl\", \"actor_id\": \"$actor\", \"scopes\": [\"read\", \"deploy\"], \"ttl\": \"90d\"}")
key_id=$(say .issued_api_key.key_id) secret=$(say .secret)
holds 'issue' '200 KEY_STATUS_ACTIVE' "$(status) $(say .issued_api_key.status)"

answer=$(call GET "/admin/issuedApiKeys/$key_id")
holds 'get' "$actor" "$(say .actor_id)"

answer=$(call GET /admin/issuedApiKeys --get --data-urlencode "filter=actor_id=\"$actor\" AND status=KEY_STATUS_ACTIVE")
holds 'list with a filter' "1 $key_id" "$(say .issued_api_keys.length '.issued_api_keys[0].key_id')"

answer=$(call PATCH "/admin/issuedApiKeys/$key_id?update_mask=name" <<<'{"issued_api_key": {"name": "renamed"}}')
holds 'update' 'renamed read,deploy' "$(say .name .scopes)"

answer=$(call POST /admin/apiKeys:verify <<<"{\"credential\": \"$secret\"}")
holds 'verify' "true $actor CREDENTIAL_TYPE_ISSUED_API_KEY" "$(say .is_valid .actor_id .credential_type)"
answer=$(call POST /admin/apiKeys:verify --header 'Cache-Control: no-cache' <<<"{\"credential\": \"$secret\"}")
holds 'verify by a fresh read' 'true' "$(say .is_valid)"

answer=$(call POST /admin/apiKeys:derive <<<"{\"credential\": \"$secret\", \"algorithm\": \"TOKEN_ALGORITHM_JWT\", \"scopes\": [\"read\"]}")
jwt=$(say .token.token)
holds 'derive a JWT' 'read' "$(say .token.scopes)"
answer=$(call POST /admin/apiKeys:derive <<<"{\"credential\": \"$secret\", \"algorithm\": \"TOKEN_ALGORITHM_MACAROON\"}")
macaroon=$(say .token.token)
holds 'derive a macaroon' 'read,deploy' "$(say .token.scopes)"
answer=$(send GET /derivedKeys/jwks.json)
holds 'the public keys need no token' "200 $KEYHOLD_SIGNING_ALGORITHM" "$(status) $(say '.keys[0].alg')"

answer=$(call POST "/admin/issuedApiKeys/$key_id:rotate" <<<'{"grace_period": "1h"}')
rotated=$(say .secret)
holds 'rotate' "$key_id" "$(say .issued_api_key.key_id)"
holds 'both secrets and both tokens verify in the grace period' 'valid valid valid valid' \
  "$(verdicts "$secret" "$rotated" "$jwt" "$macaroon")"

raw_key="legacy-curl-$RANDOM$RANDOM$RANDOM"
answer=$(call POST /admin/importedApiKeys <<<"{\"raw_key\": \"$raw_key\", \"name\": \"curl\", \"actor_id\": \"$actor\"}")
imported=$(say .key_id)
holds 'import' '200 KEY_STATUS_ACTIVE' "$(status) $(say .status)"
item="\"name\": \"curl\", \"actor_id\": \"$actor\""
answer=$(call POST /admin/importedApiKeys:batchCreate \
  <<<"{\"requests\": [{\"raw_key\": \"$raw_key-2\", $item}, {\"raw_key\": \"$raw_key\", $item}]}")
holds 'a batch imports what it can' '1 1 BATCH_CREATE_IMPORTED_API_KEYS_ERROR_ALREADY_EXISTS' \
  "$(say .success_count .failure_count '.results[1].error_code')"
second=$(say '.results[0].imported_api_key.key_id')

answer=$(call POST "/admin/apiKeys/$key_id:revoke" <<<'{"reason": "REVOCATION_REASON_KEY_COMPROMISE"}')
holds 'revoke' '200 KEY_STATUS_REVOKED' "$(status) $(say .status)"
revoked=VERIFICATION_ERROR_REVOKED
holds 'both secrets and both tokens are revoked at once' "$revoked $revoked $revoked $revoked" \
  "$(verdicts "$secret" "$rotated" "$jwt" "$macaroon")"
answer=$(call POST "/admin/apiKeys/$key_id:revoke" <<<'{"reason": "REVOCATION_REASON_SUPERSEDED"}')
holds 'a revoked key is not revoked again' '409 API_KEY_ALREADY_REVOKED' "$(status) $(say '.error.details[0].reason')"

answer=$(send POST /apiKeys:selfRevoke <<<"{\"credential\": \"$raw_key\", \"reason\": \"REVOCATION_REASON_SUPERSEDED\"}")
holds "a key revokes itself without a caller's credential" "200 $imported" "$(status) $(say .key_id)"
answer=$(call DELETE "/admin/importedApiKeys/$second")
holds 'delete' '200' "$(status)"
holds 'a batch judges each by itself' "$revoked VERIFICATION_ERROR_NOT_FOUND" "$(verdicts "$raw_key" "$raw_key-2")"

answer=$(call POST /admin/issuedApiKeys <<<'{"name": "curl"}')
holds 'bad input names the field' '400 INVALID_ARGUMENT actor_id' \
  "$(status) $(say '.error.details[0].reason' '.error.details[1].field_violations[0].field')"
answer=$(send POST /admin/apiKeys:verify <<<'{"credential": "x"}')
holds 'without a token' '401 CALLER_UNAUTHENTICATED' "$(status) $(say '.error.details[0].reason')"
plan
