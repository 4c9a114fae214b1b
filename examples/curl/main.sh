# The life cycle of a key over REST. Reads KEYHOLD_URL and KEYHOLD_TOKEN.
set -euo pipefail

# post PATH: sends the JSON on stdin. The token goes through a pipe, not an argument.
post() {
  curl --silent --show-error --fail-with-body --max-time 10 "$KEYHOLD_URL/v2alpha1$1" --data @- \
    --header 'Content-Type: application/json' --header @<(printf 'Authorization: Bearer %s' "$KEYHOLD_TOKEN")
}

# pick FIELD: prints one field of the JSON on stdin.
pick() { node -p "JSON.parse(require('fs').readFileSync(0)).$1"; }

issued=$(post /admin/issuedApiKeys <<<'{"name": "deploy bot", "actor_id": "team_42", "scopes": ["read"], "ttl": "90d"}')
key_id=$(pick issued_api_key.key_id <<<"$issued")
secret=$(pick secret <<<"$issued")
echo "issued $key_id"

echo "the secret is valid: $(post /admin/apiKeys:verify <<<"{\"credential\": \"$secret\"}" | pick is_valid)"

token=$(post /admin/apiKeys:derive <<<"{\"credential\": \"$secret\", \"algorithm\": \"TOKEN_ALGORITHM_JWT\", \"ttl\": \"1h\"}" | pick token.token)
echo "the JWT is valid: $(post /admin/apiKeys:verify <<<"{\"credential\": \"$token\"}" | pick is_valid)"

post "/admin/apiKeys/$key_id:revoke" <<<'{"reason": "REVOCATION_REASON_SUPERSEDED"}' >/dev/null
echo "after the revocation: $(post /admin/apiKeys:verify <<<"{\"credential\": \"$token\"}" | pick error_code)"
