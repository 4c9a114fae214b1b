use std::time::Duration;

use tokio_stream::StreamExt;
use tonic::{Code, Request};
use tonic_reflection::pb::v1::{
    ServerReflectionRequest, server_reflection_client::ServerReflectionClient,
    server_reflection_request::MessageRequest,
};

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

    let list = ServerReflectionRequest {
        message_request: Some(MessageRequest::ListServices("*".into())),
        ..Default::default()
    };
    let mut request = Request::new(tokio_stream::once(list).chain(tokio_stream::pending()));
    request.set_timeout(Duration::from_secs(1));
    let mut client = ServerReflectionClient::new(keyhold.channel.clone());
    let mut stream = client.server_reflection_info(request).await?.into_inner();
    let first = stream.message().await?;
    ok.step("a stream with a deadline is answered", first.is_some(), &first)?;
    let end = stream.message().await;
    let code = end.as_ref().err().map(|status| status.code());
    ok.step("it ends at its deadline with DEADLINE_EXCEEDED", code == Some(Code::DeadlineExceeded), end)
}
