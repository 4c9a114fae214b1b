//! The generated client, with the URL and the token of a server.

use crate::tap::Failure;
use keyhold_rest::apis::{
    Error, api_keys_service_api as keys, configuration::Configuration, imported_api_keys_service_api as imported,
    issued_api_keys_service_api as issued,
};
use keyhold_rest::models::{
    BatchVerifyApiKeysRequest, ErrorResponse, ErrorStatus, VerifyApiKeyRequest, VerifyApiKeyResponse,
};
use std::fmt::Debug;

pub fn connect(url: String, token: String) -> Configuration {
    Configuration { base_path: url, bearer_access_token: Some(token), ..Configuration::new() }
}

/// Characters that no other run uses.
pub fn unique() -> String {
    let since = std::time::UNIX_EPOCH.elapsed().expect("the clock is after 1970");
    format!("rust-{}-{}", std::process::id(), since.as_nanos())
}

pub async fn verify(keyhold: &Configuration, credential: &str) -> Result<VerifyApiKeyResponse, Failure> {
    Ok(keys::verify_api_key(keyhold, VerifyApiKeyRequest::new(credential.to_owned()), None, None).await?)
}

/// Returns the verdicts on all of them, from one batch.
pub async fn verdicts(keyhold: &Configuration, credentials: &[&str]) -> Result<Vec<String>, Failure> {
    let requests = credentials.iter().map(|one| VerifyApiKeyRequest::new((*one).to_owned())).collect();
    let response = keys::batch_verify_api_keys(keyhold, BatchVerifyApiKeysRequest::new(requests), None, None).await?;
    let verdict = |one: VerifyApiKeyResponse| {
        if one.is_valid { "valid".to_owned() } else { one.error_code.unwrap_or_default() }
    };
    Ok(response.results.into_iter().map(verdict).collect())
}

/// Returns the typed error of a call. Each call has an enum of its own, whose variants contain `ErrorResponse`.
pub fn refusal<T: Debug, E: Debug + Refused>(result: Result<T, Error<E>>) -> ErrorStatus {
    match result {
        Err(Error::ResponseError(response)) => match response.entity.and_then(Refused::response) {
            Some(body) if i32::from(response.status.as_u16()) == body.error.code => *body.error,
            other => panic!("{} {other:?}", response.status),
        },
        other => panic!("no refusal: {other:?}"),
    }
}

pub trait Refused {
    fn response(self) -> Option<ErrorResponse>;
}

/// All variants have the same form, so serde chooses the first.
macro_rules! refused {
    ($($error:path),*) => {
        $(impl Refused for $error {
            fn response(self) -> Option<ErrorResponse> {
                use $error as Of;
                if let Of::Status400(body) = self { Some(body) } else { None }
            }
        })*
    };
}

refused!(
    issued::CreateIssuedApiKeyError,
    issued::ListIssuedApiKeysError,
    imported::BatchCreateImportedApiKeysError,
    keys::RevokeApiKeyError
);

pub fn reason(error: &ErrorStatus) -> &str {
    error.details.iter().find_map(|one| one.reason.as_deref()).unwrap_or_default()
}
