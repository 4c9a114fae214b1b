//! Calls that several topics make.

use std::{process, time::SystemTime};

use tonic::Status;

use crate::client::{
    Keyhold,
    pb::{
        BatchVerifyApiKeysRequest, CreateIssuedApiKeyRequest, CreateIssuedApiKeyResponse, DeriveTokenRequest,
        TokenAlgorithm, VerifyApiKeyRequest, VerifyApiKeyResponse,
    },
};

/// Creates a key of a unique actor, with the scopes read and deploy.
pub async fn issue(keyhold: &Keyhold) -> Result<CreateIssuedApiKeyResponse, Status> {
    let time = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.as_nanos());
    let request = CreateIssuedApiKeyRequest {
        name: "rust".into(),
        actor_id: format!("rust-{}-{time}", process::id()),
        scopes: vec!["read".into(), "deploy".into()],
        metadata: [("env".into(), "prod".into())].into(),
        ..Default::default()
    };
    Ok(keyhold.issued().create_issued_api_key(request).await?.into_inner())
}

pub async fn derive(keyhold: &Keyhold, credential: &str, algorithm: TokenAlgorithm) -> Result<String, Status> {
    let request =
        DeriveTokenRequest { credential: credential.into(), algorithm: algorithm.into(), ..Default::default() };
    Ok(keyhold.keys().derive_token(request).await?.into_inner().token.unwrap_or_default().token)
}

pub async fn verify(keyhold: &Keyhold, credential: &str) -> Result<VerifyApiKeyResponse, Status> {
    let request = VerifyApiKeyRequest { credential: credential.into(), ..Default::default() };
    Ok(keyhold.keys().verify_api_key(request).await?.into_inner())
}

/// Returns `valid`, or the error code without its prefix, for each credential, from one batch.
pub async fn verdicts(keyhold: &Keyhold, credentials: &[&str]) -> Result<Vec<String>, Status> {
    let requests = credentials
        .iter()
        .map(|&credential| VerifyApiKeyRequest { credential: credential.into(), ..Default::default() });
    let request = BatchVerifyApiKeysRequest { requests: requests.collect() };
    let response = keyhold.keys().batch_verify_api_keys(request).await?.into_inner();
    let verdict = |one: &VerifyApiKeyResponse| match one.is_valid {
        true => "valid".into(),
        false => one.error_code().as_str_name().trim_start_matches("VERIFICATION_ERROR_").into(),
    };
    Ok(response.results.iter().map(verdict).collect())
}
