use prost_types::FieldMask;
use tonic::Code;

use crate::{
    client::{
        Keyhold,
        pb::{
            CredentialType, GetIssuedApiKeyRequest, IssuedApiKey, KeyStatus, ListIssuedApiKeysRequest,
            RevocationReason, RevokeApiKeyRequest, RotateIssuedApiKeyRequest, TokenAlgorithm,
            UpdateIssuedApiKeyRequest,
        },
    },
    errors::Details,
    keys::{derive, issue, unique, verdict_on, verdicts, verify},
    tap::{Outcome, Steps},
};

pub async fn life_of_a_key(keyhold: &Keyhold, ok: &mut Steps<'_>) -> Outcome {
    let actor_id = unique("rust");
    let issued = issue(keyhold, &actor_id).await?;
    let (secret, key) = (issued.secret().to_owned(), issued.issued_api_key.unwrap_or_default());
    ok.step("issue", !secret.is_empty() && key.status() == KeyStatus::Active, &key)?;

    let get = GetIssuedApiKeyRequest { key_id: key.key_id.clone() };
    let got = keyhold.issued().get_issued_api_key(get).await?.into_inner();
    let same = got.actor_id == actor_id && got.metadata.get("env").is_some_and(|env| env == "prod");
    ok.step("get", same && got.create_time.is_some(), &got)?;

    let filter = format!(r#"actor_id="{actor_id}" AND status=KEY_STATUS_ACTIVE"#);
    let list = ListIssuedApiKeysRequest { page_size: 10, filter, ..Default::default() };
    let page = keyhold.issued().list_issued_api_keys(list).await?.into_inner();
    let found: Vec<_> = page.issued_api_keys.iter().map(|one| &one.key_id).collect();
    ok.step("list with a filter", found == [&key.key_id], &found)?;

    let update = UpdateIssuedApiKeyRequest {
        issued_api_key: Some(IssuedApiKey { key_id: key.key_id.clone(), name: "renamed".into(), ..Default::default() }),
        update_mask: Some(FieldMask { paths: vec!["name".into()] }),
    };
    let updated = keyhold.issued().update_issued_api_key(update).await?.into_inner();
    ok.step("update by a mask", updated.name == "renamed" && updated.scopes.len() == 2, &updated)?;

    let verdict = verify(keyhold, &secret).await?;
    let same = verdict.is_valid && verdict.key_id() == key.key_id && verdict.actor_id() == actor_id;
    ok.step("verify", same, &verdict)?;
    ok.step("verify: scopes", verdict.scopes == ["read", "deploy"], &verdict)?;

    let jwt = derive(keyhold, &secret, TokenAlgorithm::Jwt).await?;
    let kind = verify(keyhold, &jwt).await?.credential_type();
    ok.step("derive a JWT", kind == CredentialType::Jwt, kind)?;
    let macaroon = derive(keyhold, &secret, TokenAlgorithm::Macaroon).await?;
    let kind = verify(keyhold, &macaroon).await?.credential_type();
    ok.step("derive a macaroon", kind == CredentialType::Macaroon, kind)?;

    let rotate = RotateIssuedApiKeyRequest { key_id: key.key_id.clone(), grace_period: Some("1h".into()) };
    let rotated = keyhold.issued().rotate_issued_api_key(rotate).await?.into_inner();
    let same_key = rotated.issued_api_key.is_some_and(|one| one.key_id == key.key_id);
    ok.step("rotate", rotated.secret != secret && same_key, "the secret or another key")?;
    let everything = [secret.as_str(), &rotated.secret, &jwt, &macaroon];
    let results = verdicts(keyhold, &everything).await?;
    ok.step(
        "both secrets and both tokens verify in the grace period, in one batch",
        results == ["valid"; 4],
        &results,
    )?;

    let revoke = RevokeApiKeyRequest {
        key_id: key.key_id,
        reason: RevocationReason::KeyCompromise.into(),
        ..Default::default()
    };
    let revoked = keyhold.keys().revoke_api_key(revoke.clone()).await?.into_inner();
    ok.step("revoke", revoked.status() == KeyStatus::Revoked && revoked.revoke_time.is_some(), &revoked)?;
    let results = verdicts(keyhold, &everything).await?;
    ok.step("both secrets and both tokens are revoked at once", results == ["REVOKED"; 4], &results)?;
    for credential in everything {
        let verdict = verdict_on(&verify(keyhold, credential).await?);
        ok.step("a single verdict is the same", verdict == "REVOKED", verdict)?;
    }
    let again = Details::of(keyhold.keys().revoke_api_key(revoke).await);
    ok.step(
        "a revoked key cannot be revoked again",
        again.is(Code::FailedPrecondition, "API_KEY_ALREADY_REVOKED"),
        &again,
    )
}

pub async fn pages(keyhold: &Keyhold, ok: &mut Steps<'_>) -> Outcome {
    let actor_id = unique("rust");
    for _ in 0..3 {
        issue(keyhold, &actor_id).await?;
    }
    let filter = format!(r#"actor_id="{actor_id}""#);
    let mut list = ListIssuedApiKeysRequest { page_size: 2, filter, ..Default::default() };
    let first = keyhold.issued().list_issued_api_keys(list.clone()).await?.into_inner();
    ok.step("the first page is full", first.issued_api_keys.len() == 2 && !first.next_page_token.is_empty(), &first)?;
    list.page_token = first.next_page_token;
    let last = keyhold.issued().list_issued_api_keys(list).await?.into_inner();
    let oldest = last.issued_api_keys.first().map(|one| &one.key_id);
    let is_other = first.issued_api_keys.iter().all(|one| Some(&one.key_id) > oldest);
    ok.step("the last page has the oldest key", last.issued_api_keys.len() == 1 && is_other, &last)?;
    ok.step("and no token", last.next_page_token.is_empty(), &last.next_page_token)
}
