//! Verifies derived JWTs with the published keys only, with the crate jsonwebtoken. The keys come over gRPC.

use std::env;

use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header, errors::ErrorKind, jwk::JwkSet};
use serde_json::{Value, json};

use crate::{
    client::{
        Keyhold,
        pb::{GetJwksRequest, Jwk, TokenAlgorithm},
    },
    keys::{derive, issue},
    tap::{Failure, Outcome, Steps},
};

/// The algorithms that Keyhold can sign with.
const ALGORITHMS: [Algorithm; 2] = [Algorithm::EdDSA, Algorithm::ES256];

pub async fn jwt_offline(keyhold: &Keyhold, ok: &mut Steps<'_>) -> Outcome {
    let issued = issue(keyhold).await?;
    let key = issued.issued_api_key.clone().unwrap_or_default();
    let jwt = derive(keyhold, issued.secret(), TokenAlgorithm::Jwt).await?;
    let (wanted, found) = (env::var("KEYHOLD_SIGNING_ALGORITHM")?.parse()?, decode_header(&jwt)?.alg);
    ok.step("the algorithm is that of the server", found == wanted, found)?;
    let keys = fetch_keys(keyhold).await?;

    let claims = verified(&jwt, &keys, "keyhold");
    ok.step("signature, times and issuer are valid", claims.is_ok(), &claims)?;
    let claims = claims?;
    let same = claims["sub"] == *key.actor_id && claims["key_id"] == *key.key_id && claims["scope"] == "read deploy";
    ok.step("its claims", same, &claims)?;

    let outcome = verified(&tampered(&jwt), &keys, "keyhold").map_err(|error| error.into_kind());
    ok.step("a tampered JWT is rejected", outcome == Err(ErrorKind::InvalidSignature), &outcome)?;
    let outcome = verified(&jwt, &keys, "another").map_err(|error| error.into_kind());
    ok.step("another issuer is rejected", outcome == Err(ErrorKind::InvalidIssuer), &outcome)
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

async fn fetch_keys(keyhold: &Keyhold) -> Result<JwkSet, Failure> {
    let response = keyhold.jwks().get_jwks(GetJwksRequest {}).await?.into_inner();
    let member = |Jwk { kty, crv, x, y, kid, r#use, alg, .. }: Jwk| json!({ "kty": kty, "crv": crv, "x": x, "y": y, "kid": kid, "use": r#use, "alg": alg });
    let keys: Vec<Value> = response.keys.into_iter().map(member).collect();
    Ok(serde_json::from_value(json!({ "keys": keys }))?)
}
