//! The life cycle of a key over gRPC, or, with the argument `service`, a web service that requires a key. Reads KEYHOLD_URL and
//! KEYHOLD_TOKEN.

mod keyhold;
mod require_scope;
mod service;

use std::{env, error::Error};

use keyhold::{
    CreateIssuedApiKeyRequest, DeriveTokenRequest, RevocationReason, RevokeApiKeyRequest, TokenAlgorithm,
    VerifyApiKeyRequest, api_keys_service_client::ApiKeysServiceClient,
    issued_api_keys_service_client::IssuedApiKeysServiceClient,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if env::args().nth(1).as_deref() == Some("service") { service::serve().await } else { life_of_a_key().await }
}

async fn life_of_a_key() -> Result<(), Box<dyn Error>> {
    let connection = keyhold::connect()?;
    let mut issued_keys = IssuedApiKeysServiceClient::new(connection.clone());
    let mut keys = ApiKeysServiceClient::new(connection);
    let create = CreateIssuedApiKeyRequest {
        name: "deploy bot".into(),
        actor_id: "team_42".into(),
        scopes: vec!["read".into()],
        ..Default::default()
    };
    let issued = issued_keys.create_issued_api_key(create).await?.into_inner();
    let verify = VerifyApiKeyRequest { credential: issued.secret().into(), ..Default::default() };
    let verdict = keys.verify_api_key(verify).await?.into_inner();
    println!("issued {}", issued.issued_api_key.clone().unwrap_or_default().key_id);
    println!("the secret is valid: {}", verdict.is_valid);

    let derive = DeriveTokenRequest {
        credential: issued.secret().into(),
        algorithm: TokenAlgorithm::Jwt.into(),
        ..Default::default()
    };
    let jwt = keys.derive_token(derive).await?.into_inner().token.unwrap_or_default().token;
    let verify = VerifyApiKeyRequest { credential: jwt, ..Default::default() };
    let verdict = keys.verify_api_key(verify.clone()).await?.into_inner();
    println!("the JWT is valid: {}", verdict.is_valid);

    let revoke = RevokeApiKeyRequest {
        key_id: verdict.key_id().into(),
        reason: RevocationReason::Superseded.into(),
        ..Default::default()
    };
    keys.revoke_api_key(revoke).await?;
    let verdict = keys.verify_api_key(verify).await?.into_inner();
    println!("after the revocation: {}", verdict.error_code().as_str_name());
    Ok(())
}
