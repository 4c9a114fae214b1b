//! A client of Keyhold over tonic, which makes the same calls as the clients in the other languages, and prints TAP.
//!
//! KEYHOLD_URL is the server, KEYHOLD_TOKEN an admin token, KEYHOLD_CA_FILE (for an https URL) the trusted certificate, and
//! KEYHOLD_ROTATE_SIGNING_KEY a program that rotates the signing key of the server, whose algorithm is KEYHOLD_SIGNING_ALGORITHM.
//! KEYHOLD_SERVE is a program that runs another server.

mod client;
mod deadlines;
mod drain;
mod errors;
mod health;
mod imported;
mod jwt;
mod keys;
mod life;
mod reflection;
mod tap;

use std::process::ExitCode;

use client::Keyhold;
use tap::Report;

#[tokio::main]
async fn main() -> ExitCode {
    let keyhold = Keyhold::from_environment();
    let mut report = Report::default();
    report.topic("life of a key", async |ok| life::life_of_a_key(&keyhold, ok).await).await;
    report.topic("pages", async |ok| life::pages(&keyhold, ok).await).await;
    report.topic("imported keys", async |ok| imported::imported_keys(&keyhold, ok).await).await;
    report.topic("errors", async |ok| errors::error_details(&keyhold, ok).await).await;
    report.topic("deadlines", async |ok| deadlines::deadlines(&keyhold, ok).await).await;
    report.topic("health", async |ok| health::health(&keyhold, ok).await).await;
    report.topic("server reflection", async |ok| reflection::server_reflection(&keyhold, ok).await).await;
    report.topic("JWT offline", async |ok| jwt::jwt_offline(&keyhold, ok).await).await;
    report.topic("drain", async |ok| drain::drain(ok).await).await;
    report.end()
}
