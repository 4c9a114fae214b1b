//! A tower layer for axum.

use std::{
    mem,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    extract::{ConnectInfo, Request},
    http::{
        HeaderMap, HeaderName, StatusCode,
        header::{AUTHORIZATION, RETRY_AFTER, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use tonic::Code;
use tower::{Layer, Service};

use crate::keyhold::{
    Connection, VerificationError, VerifyApiKeyRequest, VerifyApiKeyResponse,
    api_keys_service_client::ApiKeysServiceClient,
};

/// Where the request comes from, which `into_make_service_with_connect_info::<SocketAddr>()` adds to its extensions.
type Peer = ConnectInfo<SocketAddr>;

/// Passes on requests whose credential is valid and has the scope, and rejects all others (RFC 6750). It calls Keyhold for each request, so
/// a revocation takes effect at once. A handler finds the verdict in the extensions of its request.
#[derive(Clone)]
pub struct RequireScope {
    keys: ApiKeysServiceClient<Connection>,
    scope: &'static str,
}

impl RequireScope {
    pub fn new(keys: ApiKeysServiceClient<Connection>, scope: &'static str) -> Self {
        RequireScope { keys, scope }
    }

    async fn check(mut self, headers: &HeaderMap, peer: Option<&Peer>) -> Result<VerifyApiKeyResponse, Rejection> {
        let malformed = challenge(StatusCode::BAD_REQUEST, r#"Bearer error="invalid_request""#);
        let credential = credential_of(headers).ok_or(malformed)?;
        if credential.is_empty() {
            return Err(challenge(StatusCode::UNAUTHORIZED, "Bearer"));
        }
        let invalid = challenge(StatusCode::UNAUTHORIZED, r#"Bearer error="invalid_token""#);
        // Behind a proxy, use the address that it writes into X-Forwarded-For.
        let client_ip = peer.map(|ConnectInfo(address)| address.ip().to_string());
        let request = VerifyApiKeyRequest { credential, client_ip, ..Default::default() };
        match self.keys.verify_api_key(request).await.map(|response| response.into_inner()) {
            Ok(verdict) if verdict.is_valid && verdict.scopes.iter().any(|one| one == self.scope) => Ok(verdict),
            Ok(verdict) if verdict.is_valid => {
                let scope = format!(r#"Bearer error="insufficient_scope", scope="{}""#, self.scope);
                Err(challenge(StatusCode::FORBIDDEN, scope))
            }
            Ok(verdict) if verdict.error_code() == VerificationError::Internal => Err(no_verdict(verdict)),
            Ok(_) => Err(invalid),
            // It is longer than any credential.
            Err(status) if status.code() == Code::InvalidArgument => Err(invalid),
            Err(status) => Err(no_verdict(status)),
        }
    }
}

/// A status with a header.
type Rejection = (StatusCode, HeaderName, String);

fn challenge(status: StatusCode, challenge: impl Into<String>) -> Rejection {
    (status, WWW_AUTHENTICATE, challenge.into())
}

fn no_verdict(cause: impl std::fmt::Debug) -> Rejection {
    eprintln!("no verdict: {cause:?}");
    (StatusCode::SERVICE_UNAVAILABLE, RETRY_AFTER, "1".into())
}

/// Returns the credential in Authorization or X-API-Key, which is empty without one, or None if it is not clear which one is meant.
fn credential_of(headers: &HeaderMap) -> Option<String> {
    let values = |name| headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    let (authorizations, keys): (Vec<_>, Vec<_>) = (values(AUTHORIZATION.as_str()), values("x-api-key"));
    if authorizations.len() > 1 || keys.len() > 1 {
        return None;
    }
    let bearer = authorizations.iter().filter_map(|value| {
        let (scheme, token) = value.split_once(' ').unwrap_or((&**value, ""));
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
    });
    let mut credentials: Vec<_> = keys.iter().map(|key| &**key).filter(|key| !key.is_empty()).chain(bearer).collect();
    credentials.dedup();
    match credentials[..] {
        [] => Some(String::new()),
        // Without the comma, which joins two values of a header.
        [one] if !one.is_empty() && one.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',') => Some(one.into()),
        _ => None,
    }
}

impl<S> Layer<S> for RequireScope {
    type Service = Guarded<S>;

    fn layer(&self, inner: S) -> Guarded<S> {
        Guarded { guard: self.clone(), inner }
    }
}

#[derive(Clone)]
pub struct Guarded<S> {
    guard: RequireScope,
    inner: S,
}

impl<S> Service<Request> for Guarded<S>
where
    S: Service<Request, Response = Response> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let guard = self.guard.clone();
        // The service that is ready takes the request; its clone is not yet ready.
        let clone = self.inner.clone();
        let mut inner = mem::replace(&mut self.inner, clone);
        Box::pin(async move {
            match guard.check(request.headers(), request.extensions().get()).await {
                Ok(verdict) => {
                    request.extensions_mut().insert(verdict);
                    inner.call(request).await
                }
                Err((status, name, value)) => Ok((status, [(name, value)]).into_response()),
            }
        })
    }
}
