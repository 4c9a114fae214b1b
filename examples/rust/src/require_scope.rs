//! A tower layer for axum.

use std::{
    mem,
    pin::Pin,
    task::{Context, Poll},
};

use axum::{
    extract::Request,
    http::{
        HeaderMap, StatusCode,
        header::{AUTHORIZATION, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use tonic::Code;
use tower::{Layer, Service};

use crate::keyhold::{
    Connection, VerificationError, VerifyApiKeyRequest, VerifyApiKeyResponse,
    api_keys_service_client::ApiKeysServiceClient,
};

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

    async fn check(mut self, headers: &HeaderMap) -> Result<VerifyApiKeyResponse, Rejection> {
        let mut credentials = credentials_of(headers);
        let credential = credentials.pop().ok_or((StatusCode::UNAUTHORIZED, "Bearer".into()))?;
        if !credentials.is_empty() {
            return Err((StatusCode::BAD_REQUEST, r#"Bearer error="invalid_request""#.into()));
        }
        let invalid = (StatusCode::UNAUTHORIZED, r#"Bearer error="invalid_token""#.into());
        let request = VerifyApiKeyRequest { credential, ..Default::default() };
        match self.keys.verify_api_key(request).await.map(|response| response.into_inner()) {
            Ok(verdict) if verdict.is_valid && verdict.scopes.iter().any(|one| one == self.scope) => Ok(verdict),
            Ok(verdict) if verdict.is_valid => {
                let challenge = format!(r#"Bearer error="insufficient_scope", scope="{}""#, self.scope);
                Err((StatusCode::FORBIDDEN, challenge))
            }
            Ok(verdict) if verdict.error_code() == VerificationError::Internal => Err(no_verdict(verdict)),
            Ok(_) => Err(invalid),
            // It is longer than any credential.
            Err(status) if status.code() == Code::InvalidArgument => Err(invalid),
            Err(status) => Err(no_verdict(status)),
        }
    }
}

/// A status with its `WWW-Authenticate`.
type Rejection = (StatusCode, String);

fn no_verdict(cause: impl std::fmt::Debug) -> Rejection {
    eprintln!("no verdict: {cause:?}");
    (StatusCode::SERVICE_UNAVAILABLE, "Bearer".into())
}

/// Returns the credentials in Authorization and X-API-Key.
fn credentials_of(headers: &HeaderMap) -> Vec<String> {
    let values = |name| headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    let bearer = values(AUTHORIZATION.as_str()).filter_map(|value| {
        let (scheme, token) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
    });
    let keys = values("x-api-key").map(|value| value.into_owned());
    bearer.chain(keys).filter(|one| !one.is_empty()).collect()
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
            match guard.check(request.headers()).await {
                Ok(verdict) => {
                    request.extensions_mut().insert(verdict);
                    inner.call(request).await
                }
                Err((status, challenge)) => Ok((status, [(WWW_AUTHENTICATE, challenge)]).into_response()),
            }
        })
    }
}
