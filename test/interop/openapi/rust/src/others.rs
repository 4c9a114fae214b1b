//! Errors, what needs no credential, and the responses of later releases.

use crate::keyhold::{connect, reason, refusal, unique};
use crate::tap::{Outcome, Steps};
use keyhold_rest::apis::{
    configuration::Configuration, derived_keys_service_api as derived, health_api as health,
    imported_api_keys_service_api as imported, issued_api_keys_service_api as issued,
};
use keyhold_rest::models::{
    BatchCreateImportedApiKeysRequest, CreateImportedApiKeyRequest, CreateIssuedApiKeyRequest, ErrorResponse,
    FieldViolationReason, VerifyApiKeyResponse,
};

pub async fn errors(keyhold: &Configuration, ok: &mut Steps<'_>) -> Outcome {
    let nobody = CreateIssuedApiKeyRequest::new("rust".into(), String::new());
    let invalid = refusal(issued::create_issued_api_key(keyhold, nobody, None).await);
    let violations: Vec<_> = invalid.details.iter().filter_map(|one| one.field_violations.as_ref()).flatten().collect();
    let is_named = violations.len() == 1
        && violations[0].field == "actor_id"
        && violations[0].reason == FieldViolationReason::FieldRequired.to_string();
    ok.step("an invalid field is named", reason(&invalid) == "INVALID_ARGUMENT" && is_named, &invalid)?;

    let known = CreateImportedApiKeyRequest {
        raw_key: Some(format!("legacy-3-{}", unique())),
        ..CreateImportedApiKeyRequest::new("rust".into(), "rust".into())
    };
    imported::create_imported_api_key(keyhold, known.clone(), None).await?;
    let batch = BatchCreateImportedApiKeysRequest::new(vec![known]);
    let none = refusal(imported::batch_create_imported_api_keys(keyhold, batch, None).await);
    let code = none.details.iter().find_map(|one| one.results.as_ref()?.first()?.error_code.as_deref());
    let is_told = code.is_some_and(|one| one.ends_with("_ALREADY_EXISTS"));
    ok.step("a batch without a success has its results in the error", none.code == 409 && is_told, &none)?;

    let stranger = connect(keyhold.base_path.clone(), "unknown".into());
    let rejected = refusal(issued::list_issued_api_keys(&stranger, None, None, None, None, None).await);
    let is_unknown = rejected.code == 401 && reason(&rejected) == "CALLER_UNAUTHENTICATED";
    ok.step("without a valid token", is_unknown, &rejected)?;
    Ok(())
}

pub async fn health_and_keys(keyhold: &Configuration, ok: &mut Steps<'_>) -> Outcome {
    let alive = health::alive(keyhold).await?;
    ok.step("alive", alive.status == "ok", &alive)?;
    let ready = health::ready(keyhold).await?;
    ok.step("ready", ready.status == "ok" && ready.checks["database"] == "ok", &ready)?;
    let jwks = derived::get_jwks(keyhold, None, None).await?;
    ok.step("public keys", jwks.keys.iter().all(|key| !key.kid.is_empty()) && !jwks.keys.is_empty(), &jwks)?;
    Ok(())
}

pub async fn later_releases(ok: &mut Steps<'_>) -> Outcome {
    let verdict: VerifyApiKeyResponse = serde_json::from_str(
        r#"{"is_valid": false, "scopes": [], "metadata": {}, "missing_scopes": [], "limits": [], "error_code": "VERIFICATION_ERROR_LATER",
            "later": {"field": 1}, "status": "KEY_STATUS_LATER", "credential_type": "CREDENTIAL_TYPE_LATER"}"#,
    )?;
    let is_read = verdict.error_code.as_deref() == Some("VERIFICATION_ERROR_LATER") && verdict.status.is_some();
    ok.step("unknown values and fields of a response are accepted", is_read, &verdict)?;
    let error: ErrorResponse = serde_json::from_str(
        r#"{"error": {"code": 400, "message": "", "status": "LATER", "later": 1, "details": [
            {"@type": "type.googleapis.com/google.rpc.Help", "links": []},
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "LATER", "domain": "keyhold", "metadata": {}}]}}"#,
    )?;
    ok.step("and of an error", reason(&error.error) == "LATER", &error)?;
    Ok(())
}
