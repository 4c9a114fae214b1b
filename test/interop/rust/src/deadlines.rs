use std::time::Duration;

use tonic::{Code, Request};
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};

use crate::{
    client::{Keyhold, pb::VerifyApiKeyRequest},
    tap::{Outcome, Steps},
};

pub async fn deadlines(keyhold: &Keyhold, ok: &mut Steps<'_>) -> Outcome {
    let verify = |timeout| {
        let mut request =
            Request::new(VerifyApiKeyRequest { credential: "never imported".into(), ..Default::default() });
        request.set_timeout(timeout);
        request
    };
    let answered = keyhold.keys().verify_api_key(verify(Duration::from_secs(30))).await?.into_inner();
    ok.step("a call within its deadline succeeds", !answered.is_valid, &answered)?;
    // tonic has a timer of its own, which reports CANCELLED if it is first.
    let code = keyhold.keys().verify_api_key(verify(Duration::from_nanos(1))).await.err().map(|status| status.code());
    let has_ended = matches!(code, Some(Code::DeadlineExceeded | Code::Cancelled));
    ok.step("a call after its deadline fails", has_ended, code)?;

    let mut request = Request::new(HealthCheckRequest::default());
    request.set_timeout(Duration::from_secs(3));
    let mut stream = HealthClient::new(keyhold.channel.clone()).watch(request).await?.into_inner();
    let first = stream.message().await?.map(|response| response.status());
    ok.step("a stream with a deadline is answered", first == Some(ServingStatus::Serving), first)?;
    let end = stream.message().await;
    let code = end.as_ref().err().map(|status| status.code());
    ok.step("it ends at its deadline with DEADLINE_EXCEEDED", code == Some(Code::DeadlineExceeded), end)
}
