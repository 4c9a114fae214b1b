use std::time::Duration;

use tonic::{Code, Request};
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus, health_client::HealthClient};

use crate::{
    client::Keyhold,
    tap::{Outcome, Steps},
};

fn about(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.into() }
}

pub async fn health(keyhold: &Keyhold, ok: &mut Steps<'_>) -> Outcome {
    let mut client = HealthClient::new(keyhold.channel.clone());
    for service in ["", "keyhold.v2alpha1.ApiKeysService"] {
        let status = client.check(about(service)).await?.into_inner().status();
        ok.step(&format!("Check of {service:?}"), status == ServingStatus::Serving, status)?;
    }
    let code = client.check(about("no.such.Service")).await.err().map(|status| status.code());
    ok.step("Check of an unknown service is NOT_FOUND", code == Some(Code::NotFound), code)?;

    let mut request = Request::new(about(""));
    request.set_timeout(Duration::from_secs(3));
    let mut stream = client.watch(request).await?.into_inner();
    let first = stream.message().await?.map(|response| response.status());
    ok.step("Watch sends the current status", first == Some(ServingStatus::Serving), first)?;
    let end = stream.message().await;
    let code = end.as_ref().err().map(|status| status.code());
    ok.step("Watch ends at its deadline with DEADLINE_EXCEEDED", code == Some(Code::DeadlineExceeded), end)
}
