//! A client that openapi-generator made of docs/openapi.json, over REST, which does what those of the other generators do, and prints
//! TAP. KEYHOLD_URL is the server, KEYHOLD_TOKEN an admin token.

mod first_key;
mod imported_keys;
mod keyhold;
mod life_of_a_key;
mod others;
mod tap;

use std::env::var;
use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let [url, token] = ["KEYHOLD_URL", "KEYHOLD_TOKEN"].map(|name| var(name).expect(name));
    let keyhold = keyhold::connect(url.clone(), token.clone());
    let mut tap = tap::Tap::default();
    tap.topic("first key", async |ok| {
        first_key::first_key(url, token, ok).await
    })
    .await;
    tap.topic("life of a key", async |ok| {
        life_of_a_key::life_of_a_key(&keyhold, ok).await
    })
    .await;
    tap.topic("imported keys", async |ok| {
        imported_keys::imported_keys(&keyhold, ok).await
    })
    .await;
    tap.topic("errors", async |ok| others::errors(&keyhold, ok).await)
        .await;
    tap.topic("health and keys", async |ok| {
        others::health_and_keys(&keyhold, ok).await
    })
    .await;
    tap.topic("later releases", async |ok| {
        others::later_releases(ok).await
    })
    .await;
    ExitCode::from(tap.end())
}
