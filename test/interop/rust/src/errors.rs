use tonic::{Code, Request, Response, Status, client::Grpc, codegen::http::uri::PathAndQuery};
use tonic_prost::ProstCodec;
use tonic_types::{ErrorInfo, FieldViolation, StatusExt};

use crate::{
    client::{
        Keyhold,
        pb::{
            BatchCreateImportedApiKeysRequest, CreateIssuedApiKeyRequest, GetIssuedApiKeyRequest, VerifyApiKeyRequest,
        },
    },
    tap::{Outcome, Steps},
};

const UNKNOWN: &str = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10";

/// The machine-readable part of an error.
#[derive(Debug)]
pub struct Details {
    code: Code,
    info: Option<ErrorInfo>,
    violations: Vec<FieldViolation>,
}

impl Details {
    /// Returns those of a call that must fail.
    pub fn of<T>(result: Result<Response<T>, Status>) -> Self {
        let status = result.err().unwrap_or_else(|| Status::ok("the call succeeded"));
        let violations = status.get_details_bad_request().map(|bad| bad.field_violations);
        Details {
            code: status.code(),
            info: status.get_details_error_info(),
            violations: violations.unwrap_or_default(),
        }
    }

    pub fn is(&self, code: Code, reason: &str) -> bool {
        let matches = |info: &ErrorInfo| info.reason == reason && info.domain == "keyhold";
        self.code == code && self.info.as_ref().is_some_and(matches)
    }
}

pub async fn error_details(keyhold: &Keyhold, ok: &mut Steps<'_>) -> Outcome {
    let unknown = GetIssuedApiKeyRequest { key_id: UNKNOWN.into() };
    let details = Details::of(keyhold.issued().get_issued_api_key(unknown).await);
    ok.step("an unknown key: ErrorInfo", details.is(Code::NotFound, "API_KEY_NOT_FOUND"), &details)?;
    let named =
        details.info.as_ref().and_then(|info| info.metadata.get("key_id")).is_some_and(|key_id| key_id == UNKNOWN);
    ok.step("an unknown key: its metadata", named, &details)?;

    let bad = CreateIssuedApiKeyRequest { name: "rust".into(), ttl: Some("soon".into()), ..Default::default() };
    let details = Details::of(keyhold.issued().create_issued_api_key(bad).await);
    ok.step("bad input: ErrorInfo", details.is(Code::InvalidArgument, "INVALID_ARGUMENT"), &details)?;
    let violations = details.violations.iter().map(|one| (one.field.as_str(), one.reason.as_str()));
    let violations: Vec<_> = violations.collect();
    let wanted = [("actor_id", "FIELD_REQUIRED"), ("ttl", "INVALID_FORMAT")];
    ok.step("bad input: BadRequest has each field and its reason", violations == wanted, violations)?;

    let batch = BatchCreateImportedApiKeysRequest { requests: vec![Default::default(); 1000] };
    let details = Details::of(keyhold.imported().batch_create_imported_api_keys(batch).await);
    ok.step("1,000 failed items: ErrorInfo", details.is(Code::InvalidArgument, "INVALID_ARGUMENT"), &details)?;

    let request = VerifyApiKeyRequest { credential: "x".into(), ..Default::default() };
    let details = Details::of(keyhold.unauthenticated().verify_api_key(request).await);
    ok.step("without a token", details.is(Code::Unauthenticated, "CALLER_UNAUTHENTICATED"), &details)?;

    let code = unknown_method(keyhold).await?.err().map(|status| status.code());
    ok.step("an unknown method is UNIMPLEMENTED", code == Some(Code::Unimplemented), code)
}

async fn unknown_method(keyhold: &Keyhold) -> Result<Result<Response<()>, Status>, tonic::transport::Error> {
    let mut grpc = Grpc::new(keyhold.channel.clone());
    grpc.ready().await?;
    let path = PathAndQuery::from_static("/keyhold.v2alpha1.ApiKeysService/Invent");
    Ok(grpc.unary(Request::new(()), path, ProstCodec::<(), ()>::default()).await)
}
