use std::{
    env,
    io::{BufRead, BufReader},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::Value;
use tokio::task::JoinSet;

use crate::{
    client::{
        endpoint,
        pb::{VerifyApiKeyRequest, api_keys_service_client::ApiKeysServiceClient},
    },
    tap::{Outcome, Steps},
};

const CALLERS: usize = 16;

/// Number of calls after which the server receives SIGTERM.
const DRAIN_AFTER: usize = 500;

/// Calls a server of its own, which shuts down meanwhile. No call that reaches the server may fail.
pub async fn drain(ok: &mut Steps<'_>) -> Outcome {
    let program = env::var_os("KEYHOLD_SERVE").expect("KEYHOLD_SERVE");
    let mut server = Command::new(program).stdout(Stdio::piped()).spawn()?;
    let mut log = BufReader::new(server.stdout.take().expect("a pipe")).lines();
    let url = log.by_ref().find_map(|line| {
        let line: Value = serde_json::from_str(&line.ok()?).ok()?;
        line["url"].as_str().map(str::to_owned)
    });
    thread::spawn(move || log.for_each(drop));
    let channel = endpoint(&url.expect("a line with the URL"))
        .http2_keep_alive_interval(Duration::from_secs(10))
        .keep_alive_while_idle(true)
        .connect_lazy();
    let count = Arc::new(AtomicUsize::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let (mut keys, count) = (ApiKeysServiceClient::new(channel.clone()), count.clone());
        let pid = server.id().to_string();
        callers.spawn(async move {
            let request = VerifyApiKeyRequest { credential: "never imported".into(), ..Default::default() };
            loop {
                if let Err(status) = keys.verify_api_key(request.clone()).await {
                    return format!("{status:?}");
                }
                if count.fetch_add(1, Ordering::Relaxed) + 1 == DRAIN_AFTER {
                    Command::new("kill").arg(&pid).status().expect("kill");
                }
            }
        });
    }
    let failures = callers.join_all().await;
    // Then no server listens.
    let lost: Vec<_> = failures.iter().filter(|failure| !failure.contains("ConnectionRefused")).collect();
    ok.step("no accepted call is lost", lost.is_empty(), &lost)?;
    server.wait()?;
    Ok(())
}
