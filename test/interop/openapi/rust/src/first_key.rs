//! The lines of docs/clients.md.

use crate::tap::{Outcome, Steps};
use keyhold_rest::apis::{api_keys_service_api, configuration::Configuration, issued_api_keys_service_api};
use keyhold_rest::models::{CreateIssuedApiKeyRequest, VerifyApiKeyRequest};

pub async fn first_key(url: String, token: String, ok: &mut Steps<'_>) -> Outcome {
    let keyhold = Configuration { base_path: url, bearer_access_token: Some(token), ..Configuration::new() };
    let create = CreateIssuedApiKeyRequest::new("deploy bot".into(), "team_42".into());
    let issued = issued_api_keys_service_api::create_issued_api_key(&keyhold, create, None).await?;
    let verify = VerifyApiKeyRequest::new(issued.secret.expect("only the response to a retry has no secret"));
    let verdict = api_keys_service_api::verify_api_key(&keyhold, verify, None, None).await?;
    ok.step("the secret is valid", verdict.is_valid, &verdict)?;
    Ok(())
}
