use std::{env, error::Error, net::SocketAddr};

use axum::{Extension, Json, Router, routing::get};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::{
    keyhold::{self, VerifyApiKeyResponse, api_keys_service_client::ApiKeysServiceClient},
    require_scope::RequireScope,
};

/// Listens on PORT. Its token needs only the scope keyhold:verify.
pub async fn serve() -> Result<(), Box<dyn Error>> {
    let keys = ApiKeysServiceClient::new(keyhold::connect()?);
    let app = Router::new().route("/books", get(books)).layer(RequireScope::new(keys, "read"));
    let port = env::var("PORT").unwrap_or("3000".into());
    // With the address of the client, for keys that are restricted to addresses.
    let app = app.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(TcpListener::bind(format!("127.0.0.1:{port}")).await?, app).await?;
    Ok(())
}

async fn books(Extension(caller): Extension<VerifyApiKeyResponse>) -> Json<Value> {
    Json(json!({ "reader": caller.actor_id() }))
}
