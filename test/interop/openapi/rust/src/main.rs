//! A client that openapi-generator made of docs/openapi.json, over REST, and prints TAP.
//!
//! KEYHOLD_URL is the server, KEYHOLD_TOKEN an admin token.

mod first_key;
mod keyhold;
mod life_of_a_key;
mod others;
#[path = "../../../rust/src/tap.rs"]
mod tap;

use std::env::var;
use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let [url, token] = ["KEYHOLD_URL", "KEYHOLD_TOKEN"].map(|name| var(name).expect(name));
    let keyhold = keyhold::connect(url.clone(), token.clone());
    let mut report = tap::Report::default();
    report.topic("first key", async |ok| first_key::first_key(url, token, ok).await).await;
    report.topic("life of a key", async |ok| life_of_a_key::life_of_a_key(&keyhold, ok).await).await;
    report.topic("errors", async |ok| others::errors(&keyhold, ok).await).await;
    report.topic("health and keys", async |ok| others::health_and_keys(&keyhold, ok).await).await;
    report.topic("later releases", async |ok| others::later_releases(ok).await).await;
    report.end()
}
