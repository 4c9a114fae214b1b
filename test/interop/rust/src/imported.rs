use crate::{
    client::{
        Keyhold,
        pb::{
            BatchCreateImportedApiKeysError, BatchCreateImportedApiKeysRequest, CreateImportedApiKeyRequest,
            DeleteImportedApiKeyRequest, KeyStatus, RevocationReason, SelfRevokeApiKeyRequest,
        },
    },
    keys::{unique, verdicts, verify},
    tap::{Outcome, Steps},
};

fn import(raw_key: &str) -> CreateImportedApiKeyRequest {
    CreateImportedApiKeyRequest {
        raw_key: raw_key.into(),
        name: "rust".into(),
        actor_id: "rust".into(),
        ..Default::default()
    }
}

pub async fn imported_keys(keyhold: &Keyhold, ok: &mut Steps<'_>) -> Outcome {
    let (raw_key, other) = (unique("legacy"), unique("legacy"));
    let key = keyhold.imported().create_imported_api_key(import(&raw_key)).await?.into_inner();
    ok.step("import", key.status() == KeyStatus::Active, &key)?;
    let verdict = verify(keyhold, &raw_key).await?;
    ok.step("verify the raw key", verdict.is_valid && verdict.key_id() == key.key_id, &verdict)?;

    let request = BatchCreateImportedApiKeysRequest { requests: vec![import(&other), import(&raw_key)] };
    let batch = keyhold.imported().batch_create_imported_api_keys(request).await?.into_inner();
    ok.step("a batch imports what it can", (batch.success_count, batch.failure_count) == (1, 1), &batch)?;
    let codes: Vec<_> = batch.results.iter().map(|result| result.error_code()).collect();
    let wanted = [BatchCreateImportedApiKeysError::Unspecified, BatchCreateImportedApiKeysError::AlreadyExists];
    ok.step("and reports the failed item", codes == wanted, &codes)?;

    let request = SelfRevokeApiKeyRequest { credential: raw_key.clone(), reason: RevocationReason::Superseded.into() };
    let revoked = keyhold.self_service().self_revoke_api_key(request).await?.into_inner();
    ok.step("a key revokes itself without a caller's credential", revoked.key_id == key.key_id, &revoked)?;
    let results = verdicts(keyhold, &[&raw_key, &other, "never imported"]).await?;
    ok.step("a batch has a verdict on each", results == ["REVOKED", "valid", "NOT_FOUND"], &results)?;

    let imported = batch.results.into_iter().find_map(|result| result.imported_api_key).unwrap_or_default();
    keyhold.imported().delete_imported_api_key(DeleteImportedApiKeyRequest { key_id: imported.key_id }).await?;
    let results = verdicts(keyhold, &[&other]).await?;
    ok.step("delete", results == ["NOT_FOUND"], &results)
}
