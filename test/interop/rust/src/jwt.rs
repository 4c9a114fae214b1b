//! Verifies derived JWTs with the published keys only, with the crate jsonwebtoken.

use std::{env, sync::Arc};

use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header, errors::ErrorKind, jwk::JwkSet};
use serde_json::Value;
use tokio::process::Command;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

use crate::{
    client::{
        Keyhold,
        pb::{GetJwksRequest, TokenAlgorithm},
    },
    keys::{derive, issue, unique},
    tap::{Outcome, Steps},
};

/// The algorithms that Keyhold can sign with.
const ALGORITHMS: [Algorithm; 2] = [Algorithm::EdDSA, Algorithm::ES256];

pub async fn jwt_offline(keyhold: &Keyhold, ok: &mut Steps<'_>) -> Outcome {
    let actor_id = unique("rust");
    let issued = issue(keyhold, &actor_id).await?;
    let key_id = issued.issued_api_key.as_ref().map(|key| key.key_id.as_str()).unwrap_or_default();
    let first = derive(keyhold, issued.secret(), TokenAlgorithm::Jwt).await?;
    let (wanted, found) = (env::var("KEYHOLD_SIGNING_ALGORITHM")?.parse()?, decode_header(&first)?.alg);
    ok.step("the algorithm is that of the server", found == wanted, found)?;
    let before = fetch_keys(keyhold).await?;

    let claims = verified(&first, &before, "keyhold");
    ok.step("signature, times and issuer are valid", claims.is_ok(), &claims)?;
    let claims = claims?;
    let same = claims["sub"] == *actor_id && claims["key_id"] == *key_id && claims["scope"] == "read deploy";
    ok.step("its claims", same, &claims)?;

    let outcome = verified(&tampered(&first), &before, "keyhold").map_err(|error| error.into_kind());
    ok.step("a tampered JWT is rejected", outcome == Err(ErrorKind::InvalidSignature), &outcome)?;
    let outcome = verified(&first, &before, "another").map_err(|error| error.into_kind());
    ok.step("another issuer is rejected", outcome == Err(ErrorKind::InvalidIssuer), &outcome)?;

    let rotation = Command::new(env::var_os("KEYHOLD_ROTATE_SIGNING_KEY").unwrap_or_default()).output().await?;
    ok.step("the signing key is rotated", rotation.status.success(), &rotation)?;
    let second = derive(keyhold, issued.secret(), TokenAlgorithm::Jwt).await?;
    let unknown = verified(&second, &before, "keyhold");
    ok.step("the key of a new JWT is missing in the old set", unknown.is_err(), &unknown)?;
    let after = fetch_keys(keyhold).await?;
    let claims = verified(&second, &after, "keyhold");
    ok.step("a new JWT verifies with the new set", claims.is_ok(), &claims)?;
    let claims = verified(&first, &after, "keyhold");
    ok.step("an older JWT still verifies", claims.is_ok(), &claims)?;
    let over_grpc = keyhold.jwks().get_jwks(GetJwksRequest {}).await?.into_inner();
    let kids: Vec<_> = over_grpc.keys.iter().map(|key| key.kid.as_str()).collect();
    let all = after.keys.iter().all(|key| key.common.key_id.as_deref().is_some_and(|kid| kids.contains(&kid)));
    ok.step("the set is the same over gRPC", all, kids)
}

/// Returns the claims of a valid JWT.
fn verified(jwt: &str, keys: &JwkSet, issuer: &str) -> jsonwebtoken::errors::Result<Value> {
    let header = decode_header(jwt)?;
    let key = header.kid.as_deref().and_then(|kid| keys.find(kid)).ok_or(ErrorKind::InvalidToken)?;
    // The algorithm is that of the key, not of the JWT.
    let algorithm = key.common.key_algorithm.and_then(|name| name.to_string().parse().ok());
    let algorithm = algorithm.filter(|one| ALGORITHMS.contains(one)).ok_or(ErrorKind::InvalidAlgorithm)?;
    let mut validation = Validation::new(algorithm);
    validation.set_issuer(&[issuer]);
    validation.set_required_spec_claims(&["exp", "iss", "sub"]);
    Ok(decode(jwt, &DecodingKey::from_jwk(key)?, &validation)?.claims)
}

/// Changes a bit of the signature.
fn tampered(jwt: &str) -> String {
    let mut bytes = jwt.as_bytes().to_vec();
    let at = bytes.len() - 40;
    bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn fetch_keys(keyhold: &Keyhold) -> Result<JwkSet, ureq::Error> {
    let url = format!("{}/v2alpha1/derivedKeys/jwks.json", keyhold.url);
    let mut config = ureq::config::Config::builder();
    if let Some(pem) = &keyhold.certificate {
        let roots = RootCerts::Specific(Arc::new(vec![Certificate::from_pem(pem)?]));
        config = config.tls_config(TlsConfig::builder().root_certs(roots).build());
    }
    let agent = config.build().new_agent();
    let fetched = tokio::task::spawn_blocking(move || agent.get(&url).call()?.body_mut().read_json());
    fetched.await.unwrap_or_else(|error| Err(ureq::Error::Other(error.into())))
}
