from uuid import uuid4

from keyhold import call, reason, refusal, verdicts, verify
from keyhold_rest.api.api_keys_service import api_keys_service_derive_token as derive_token
from keyhold_rest.api.api_keys_service import api_keys_service_revoke_api_key as revoke
from keyhold_rest.api.issued_api_keys_service import issued_api_keys_service_create_issued_api_key as create
from keyhold_rest.api.issued_api_keys_service import issued_api_keys_service_get_issued_api_key as get
from keyhold_rest.api.issued_api_keys_service import issued_api_keys_service_list_issued_api_keys as list_keys
from keyhold_rest.api.issued_api_keys_service import issued_api_keys_service_rotate_issued_api_key as rotate
from keyhold_rest.api.issued_api_keys_service import issued_api_keys_service_update_issued_api_key as update
from keyhold_rest.models import (
    CreateIssuedApiKeyRequest,
    CreateIssuedApiKeyRequestMetadata,
    DeriveTokenRequest,
    DeriveTokenRequestCustomClaims,
    ErrorReason,
    KeyStatus,
    RevocationReason,
    RevokeApiKeyBody,
    RotateIssuedApiKeyBody,
    TokenAlgorithm,
    UpdateIssuedApiKeyBody,
)


def life_of_a_key(client, ok):
    actor = f"python-{uuid4()}"
    request = CreateIssuedApiKeyRequest(
        name="python",
        actor_id=actor,
        scopes=["read", "deploy"],
        ttl="90d",
        metadata=CreateIssuedApiKeyRequestMetadata.from_dict({"env": "prod"}),
    )
    created = call(create, client, body=request)
    key, secret = created.issued_api_key, created.secret
    ok("issue", secret and key.status == KeyStatus.KEY_STATUS_ACTIVE, key)

    got = call(get, client, key.key_id)
    ok("get", got.actor_id == actor and got.metadata["env"] == "prod" and got.expire_time > got.create_time, got)

    page = call(list_keys, client, page_size=10, filter_=f'actor_id="{actor}" AND status=KEY_STATUS_ACTIVE')
    ok("list with a filter", [one.key_id for one in page.issued_api_keys] == [key.key_id], page)

    renamed = call(update, client, key.key_id, update_mask="name", body=UpdateIssuedApiKeyBody(name="renamed"))
    kept = renamed.scopes == ["read", "deploy"] and renamed.metadata["env"] == "prod"
    ok("an update of the name keeps scopes and metadata", renamed.name == "renamed" and kept, renamed)

    verdict = verify(client, secret)
    ok("verify", verdict.is_valid and verdict.key_id == key.key_id and verdict.scopes == ["read", "deploy"], verdict)

    claims = DeriveTokenRequestCustomClaims.from_dict({"job": "nightly"})
    request = DeriveTokenRequest(
        credential=secret,
        algorithm=TokenAlgorithm.TOKEN_ALGORITHM_JWT,
        ttl="10m",
        scopes=["read"],
        custom_claims=claims,
    )
    jwt = call(derive_token, client, body=request).token
    ok("derive a JWT", jwt.claims["job"] == "nightly" and verify(client, jwt.token).scopes == ["read"], jwt)
    request = DeriveTokenRequest(credential=secret, algorithm=TokenAlgorithm.TOKEN_ALGORITHM_MACAROON)
    macaroon = call(derive_token, client, body=request).token

    rotated = call(rotate, client, key.key_id, body=RotateIssuedApiKeyBody(grace_period="1h"))
    everything = [secret, rotated.secret, jwt.token, macaroon.token]
    found = verdicts(client, *everything)
    ok("after a rotation with a grace period, both secrets and both tokens verify", found == ["valid"] * 4, found)

    cleared = call(update, client, key.key_id, update_mask="scopes", body=UpdateIssuedApiKeyBody(scopes=[]))
    ok("scopes are cleared deliberately", cleared.scopes == [] and cleared.metadata["env"] == "prod", cleared)

    revocation = RevokeApiKeyBody(
        reason=RevocationReason.REVOCATION_REASON_KEY_COMPROMISE, revocation_description="found in a log"
    )
    call(revoke, client, key.key_id, body=revocation)
    revoked = call(get, client, key.key_id)
    recorded = (revoked.status, revoked.revocation_reason, revoked.revocation_description)
    wanted = (KeyStatus.KEY_STATUS_REVOKED, RevocationReason.REVOCATION_REASON_KEY_COMPROMISE, "found in a log")
    ok("revoke with reason and description", recorded == wanted, revoked)
    found = verdicts(client, *everything)
    ok("all are revoked at once", found == ["VERIFICATION_ERROR_REVOKED"] * 4, found)

    again = refusal(lambda: call(revoke, client, key.key_id, body=revocation))
    named = reason(again) == ErrorReason.API_KEY_ALREADY_REVOKED
    ok("a revoked key is not revoked again", again.code == 409 and named, again)
