use crate::keyhold::{reason, refusal, unique, verdicts, verify};
use crate::tap::{Outcome, Steps};
use keyhold_rest::apis::{
    api_keys_service_api as keys, configuration::Configuration, issued_api_keys_service_api as issued,
};
use keyhold_rest::models::{
    CreateIssuedApiKeyRequest, DeriveTokenRequest, ErrorReason, KeyStatus, RevocationReason, RevokeApiKeyBody,
    RotateIssuedApiKeyBody, TokenAlgorithm, UpdateIssuedApiKeyBody,
};
use serde_json::json;
use std::collections::HashMap;

pub async fn life_of_a_key(keyhold: &Configuration, ok: &mut Steps<'_>) -> Outcome {
    let actor = unique();
    let request = CreateIssuedApiKeyRequest {
        scopes: Some(vec!["read".into(), "deploy".into()]),
        ttl: Some("90d".into()),
        metadata: Some(HashMap::from([("env".into(), "prod".into())])),
        ..CreateIssuedApiKeyRequest::new("rust".into(), actor.clone())
    };
    let created = issued::create_issued_api_key(keyhold, request, None).await?;
    let (key, secret) = (created.issued_api_key, created.secret.unwrap_or_default());
    let id = key.key_id.as_str();
    ok.step("issue", !secret.is_empty() && key.status == KeyStatus::KeyStatusActive.to_string(), &key)?;

    let got = issued::get_issued_api_key(keyhold, id, None).await?;
    ok.step("get", got.actor_id == actor && got.metadata["env"] == "prod" && got.expire_time.is_some(), &got)?;

    let filter = format!("actor_id=\"{actor}\" AND status=KEY_STATUS_ACTIVE");
    let page = issued::list_issued_api_keys(keyhold, Some(10), None, Some(&filter), None, None).await?;
    ok.step("list with a filter", page.issued_api_keys.len() == 1 && page.issued_api_keys[0].key_id == id, &page)?;

    let name = UpdateIssuedApiKeyBody { name: Some("renamed".into()), ..UpdateIssuedApiKeyBody::new() };
    let renamed = issued::update_issued_api_key(keyhold, id, "name", name, None).await?;
    let kept = renamed.scopes == ["read", "deploy"] && renamed.metadata.len() == 1;
    ok.step("an update of the name keeps scopes and metadata", renamed.name == "renamed" && kept, &renamed)?;

    let verdict = verify(keyhold, &secret).await?;
    ok.step(
        "verify",
        verdict.is_valid && verdict.key_id.as_deref() == Some(id) && verdict.scopes.len() == 2,
        &verdict,
    )?;

    let request = DeriveTokenRequest {
        ttl: Some("10m".into()),
        scopes: Some(vec!["read".into()]),
        custom_claims: Some(HashMap::from([("job".into(), json!("nightly"))])),
        ..DeriveTokenRequest::new(secret.clone(), TokenAlgorithm::TokenAlgorithmJwt)
    };
    let jwt = keys::derive_token(keyhold, request, None).await?.token;
    let has_claim = jwt.claims.as_ref().is_some_and(|claims| claims["job"] == "nightly");
    ok.step("derive a JWT", has_claim && jwt.scopes == ["read"] && verify(keyhold, &jwt.token).await?.is_valid, &jwt)?;
    let request = DeriveTokenRequest::new(secret.clone(), TokenAlgorithm::TokenAlgorithmMacaroon);
    let macaroon = keys::derive_token(keyhold, request, None).await?.token;

    let grace = RotateIssuedApiKeyBody { grace_period: Some("1h".into()) };
    let rotated = issued::rotate_issued_api_key(keyhold, id, None, Some(grace)).await?;
    let all = [secret.as_str(), &rotated.secret, &jwt.token, &macaroon.token];
    let found = verdicts(keyhold, &all).await?;
    let name = "after a rotation with a grace period, both secrets and both tokens verify";
    ok.step(name, found == ["valid"; 4], &found)?;

    let none = UpdateIssuedApiKeyBody { scopes: Some(vec![]), ..UpdateIssuedApiKeyBody::new() };
    let cleared = issued::update_issued_api_key(keyhold, id, "scopes", none, None).await?;
    ok.step("scopes are cleared deliberately", cleared.scopes.is_empty() && cleared.metadata.len() == 1, &cleared)?;

    let revocation = RevokeApiKeyBody {
        reason: Some(RevocationReason::RevocationReasonKeyCompromise),
        revocation_description: Some("found in a log".into()),
        ..RevokeApiKeyBody::new()
    };
    keys::revoke_api_key(keyhold, id, None, Some(revocation.clone())).await?;
    let revoked = issued::get_issued_api_key(keyhold, id, None).await?;
    let is_recorded = revoked.revocation_reason.as_deref() == Some("REVOCATION_REASON_KEY_COMPROMISE")
        && revoked.revocation_description.as_deref() == Some("found in a log");
    ok.step("revoke with reason and description", revoked.status == "KEY_STATUS_REVOKED" && is_recorded, &revoked)?;
    let found = verdicts(keyhold, &all).await?;
    ok.step("all are revoked at once", found == ["VERIFICATION_ERROR_REVOKED"; 4], &found)?;

    let again = refusal(keys::revoke_api_key(keyhold, id, None, Some(revocation)).await);
    let is_named = reason(&again) == ErrorReason::ApiKeyAlreadyRevoked.to_string();
    ok.step("a revoked key is not revoked again", again.code == 409 && is_named, &again)?;
    Ok(())
}
