use std::{env, error::Error, time::Duration};

use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Channel, ClientTlsConfig, Endpoint},
};

tonic::include_proto!("keyhold.v2alpha1");

/// A connection that sends a token with every call.
pub type Connection = InterceptedService<Channel, Bearer>;

#[derive(Clone)]
pub struct Bearer(MetadataValue<Ascii>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert("authorization", self.0.clone());
        Ok(request)
    }
}

/// Returns a connection to KEYHOLD_URL with KEYHOLD_TOKEN. It is opened by the first call, and again after it was lost.
pub fn connect() -> Result<Connection, Box<dyn Error>> {
    let limit = Duration::from_secs(5);
    let channel = Endpoint::from_shared(env::var("KEYHOLD_URL")?)?
        .tls_config(ClientTlsConfig::new().with_enabled_roots())?
        .connect_timeout(limit)
        .timeout(limit)
        .connect_lazy();
    let token = format!("Bearer {}", env::var("KEYHOLD_TOKEN")?).parse()?;
    Ok(InterceptedService::new(channel, Bearer(token)))
}
