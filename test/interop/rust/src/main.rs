//! A client of Keyhold over tonic, which prints TAP.
//!
//! KEYHOLD_URL is the server, KEYHOLD_TOKEN an admin token, KEYHOLD_CA_FILE (for an https URL) the trusted certificate, and
//! KEYHOLD_SIGNING_ALGORITHM the algorithm of its JWTs.

mod client;
mod deadlines;
mod errors;
mod jwt;
mod keys;
mod life;
mod tap;

use std::process::ExitCode;

use client::Keyhold;
use tap::Report;

#[tokio::main]
async fn main() -> ExitCode {
    let keyhold = Keyhold::from_environment();
    let mut report = Report::default();
    report.topic("life of a key", async |ok| life::life_of_a_key(&keyhold, ok).await).await;
    report.topic("errors", async |ok| errors::error_details(&keyhold, ok).await).await;
    report.topic("deadlines", async |ok| deadlines::deadlines(&keyhold, ok).await).await;
    report.topic("JWT offline", async |ok| jwt::jwt_offline(&keyhold, ok).await).await;
    report.end()
}
