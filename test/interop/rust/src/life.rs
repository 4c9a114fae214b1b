use prost_types::FieldMask;
use tonic::Code;

use crate::{
    client::{
        Keyhold,
        pb::{
            IssuedApiKey, KeyStatus, RevocationReason, RevokeApiKeyRequest, TokenAlgorithm, UpdateIssuedApiKeyRequest,
        },
    },
    errors::Details,
    keys::{derive, issue, verdicts, verify},
    tap::{Outcome, Steps},
};

/// Calls with each kind of field; the client in Go makes all calls.
pub async fn life_of_a_key(keyhold: &Keyhold, ok: &mut Steps<'_>) -> Outcome {
    let issued = issue(keyhold).await?;
    let (secret, key) = (issued.secret().to_owned(), issued.issued_api_key.unwrap_or_default());
    let is_active = key.status() == KeyStatus::Active && key.create_time.is_some();
    ok.step("issue", !secret.is_empty() && is_active, &key)?;

    let update = UpdateIssuedApiKeyRequest {
        issued_api_key: Some(IssuedApiKey { key_id: key.key_id.clone(), name: "renamed".into(), ..Default::default() }),
        update_mask: Some(FieldMask { paths: vec!["name".into()] }),
    };
    let updated = keyhold.issued().update_issued_api_key(update).await?.into_inner();
    let is_kept = updated.metadata.get("env").is_some_and(|env| env == "prod");
    ok.step("update by a mask", updated.name == "renamed" && is_kept, &updated)?;

    let verdict = verify(keyhold, &secret).await?;
    ok.step("verify", verdict.is_valid && verdict.scopes == ["read", "deploy"], &verdict)?;
    let jwt = derive(keyhold, &secret, TokenAlgorithm::Jwt).await?;
    let macaroon = derive(keyhold, &secret, TokenAlgorithm::Macaroon).await?;
    let everything = [secret.as_str(), &jwt, &macaroon];
    let results = verdicts(keyhold, &everything).await?;
    ok.step("the secret and both tokens verify, in one batch", results == ["valid"; 3], &results)?;

    let revoke = RevokeApiKeyRequest {
        key_id: key.key_id,
        reason: RevocationReason::KeyCompromise.into(),
        ..Default::default()
    };
    let revoked = keyhold.keys().revoke_api_key(revoke.clone()).await?.into_inner();
    ok.step("revoke", revoked.status() == KeyStatus::Revoked && revoked.revoke_time.is_some(), &revoked)?;
    let results = verdicts(keyhold, &everything).await?;
    ok.step("all are revoked at once", results == ["REVOKED"; 3], &results)?;
    let again = Details::of(keyhold.keys().revoke_api_key(revoke).await);
    let is_rejected = again.is(Code::FailedPrecondition, "API_KEY_ALREADY_REVOKED");
    ok.step("a revoked key cannot be revoked again", is_rejected, &again)
}
