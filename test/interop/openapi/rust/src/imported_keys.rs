use crate::keyhold::{reason, refusal, unique, verify};
use crate::tap::{Outcome, Tap};
use keyhold_rest::apis::{
    api_keys_service_api as keys, configuration::Configuration,
    imported_api_keys_service_api as imported, self_service_service_api as self_service,
};
use keyhold_rest::models::{
    BatchCreateImportedApiKeysError, BatchCreateImportedApiKeysRequest,
    CreateImportedApiKeyRequest, RevocationReason, RevokeImportedApiKeyBody,
    SelfRevokeApiKeyRequest, UpdateImportedApiKeyBody,
};

pub async fn imported_keys(keyhold: &Configuration, ok: &mut Tap) -> Outcome {
    let actor = unique();
    let (first, second) = (format!("legacy-1-{actor}"), format!("legacy-2-{actor}"));
    let request = |raw_key: &str| CreateImportedApiKeyRequest {
        raw_key: Some(raw_key.into()),
        scopes: Some(vec!["read".into()]),
        ..CreateImportedApiKeyRequest::new("rust".into(), actor.clone())
    };

    let created = imported::create_imported_api_key(keyhold, request(&first), None).await?;
    ok.step(
        "import",
        created.status == "KEY_STATUS_ACTIVE" && verify(keyhold, &first).await?.is_valid,
        &created,
    )?;
    let got = imported::get_imported_api_key(keyhold, &created.key_id, None).await?;
    ok.step("get", got == created, &got)?;

    let batch = BatchCreateImportedApiKeysRequest::new(vec![request(&second), request(&first)]);
    let results = imported::batch_create_imported_api_keys(keyhold, batch, None).await?;
    let exists =
        BatchCreateImportedApiKeysError::BatchCreateImportedApiKeysErrorAlreadyExists.to_string();
    let is_told = results.results[1].error_code.as_ref() == Some(&exists);
    let counts = (results.success_count, results.failure_count);
    ok.step(
        "a batch imports what it can",
        counts == (1, 1) && is_told,
        &results,
    )?;
    let other = results.results[0]
        .imported_api_key
        .as_ref()
        .map(|key| key.key_id.clone())
        .unwrap_or_default();

    let filter = format!("actor_id=\"{actor}\"");
    let page = imported::list_imported_api_keys(keyhold, None, None, Some(&filter), None).await?;
    ok.step("list", page.imported_api_keys.len() == 2, &page)?;
    let name = UpdateImportedApiKeyBody {
        name: Some("renamed".into()),
        ..UpdateImportedApiKeyBody::new()
    };
    let renamed = imported::update_imported_api_key(keyhold, &other, "name", name, None).await?;
    let kept = renamed.name == "renamed" && renamed.scopes == ["read"];
    ok.step("an update of the name keeps the scopes", kept, &renamed)?;

    let itself = SelfRevokeApiKeyRequest {
        reason: Some(RevocationReason::RevocationReasonSuperseded),
        ..SelfRevokeApiKeyRequest::new(first.clone())
    };
    let revoked = self_service::self_revoke_api_key(keyhold, itself, None).await?;
    ok.step(
        "a key revokes itself",
        revoked.key_id == created.key_id,
        &revoked,
    )?;
    let revocation = RevokeImportedApiKeyBody {
        reason: Some(RevocationReason::RevocationReasonAffiliationChanged),
        revocation_description: Some("left".into()),
        ..RevokeImportedApiKeyBody::new()
    };
    keys::revoke_imported_api_key(keyhold, &other, None, Some(revocation)).await?;
    let revoked = imported::get_imported_api_key(keyhold, &other, None).await?;
    let is_recorded = revoked.revocation_reason.as_deref()
        == Some("REVOCATION_REASON_AFFILIATION_CHANGED")
        && revoked.revocation_description.as_deref() == Some("left");
    ok.step("revoke with reason and description", is_recorded, &revoked)?;

    imported::delete_imported_api_key(keyhold, &other, None).await?;
    let gone = refusal(imported::get_imported_api_key(keyhold, &other, None).await);
    ok.step(
        "delete",
        gone.code == 404 && reason(&gone) == "API_KEY_NOT_FOUND",
        &gone,
    )?;
    Ok(())
}
