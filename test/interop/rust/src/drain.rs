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

/// In each line of the server's log that is about a call.
const RPC: &str = "keyhold.v2alpha1.ApiKeysService/VerifyApiKey";

/// Calls a server of its own, which shuts down meanwhile. Every call that the server has accepted must be answered. tonic fails those
/// that cross its GOAWAY, which the server has not seen; other clients repeat them.
pub async fn drain(ok: &mut Steps<'_>) -> Outcome {
    let program = env::var_os("KEYHOLD_SERVE").expect("KEYHOLD_SERVE");
    let mut server = Command::new(program).stdout(Stdio::piped()).spawn()?;
    let mut log = BufReader::new(server.stdout.take().expect("a pipe")).lines();
    let url = log.by_ref().find_map(|line| {
        let line: Value = serde_json::from_str(&line.ok()?).ok()?;
        line["url"].as_str().map(str::to_owned)
    });
    let accepted = thread::spawn(move || log.filter(|line| line.as_ref().is_ok_and(|line| line.contains(RPC))).count());
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
    server.wait()?;
    let (accepted, answered) = (accepted.join().expect("the log"), count.load(Ordering::Relaxed));
    ok.step("every accepted call is answered", accepted == answered, &(accepted, answered, failures))?;
    Ok(())
}
