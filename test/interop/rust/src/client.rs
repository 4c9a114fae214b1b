use std::{env, fs};

use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
    service::{Interceptor, interceptor::InterceptedService},
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint},
};

#[allow(clippy::doc_lazy_continuation)]
pub mod pb {
    tonic::include_proto!("keyhold.v2alpha1");
}

use pb::{
    api_keys_service_client::ApiKeysServiceClient, derived_keys_service_client::DerivedKeysServiceClient,
    imported_api_keys_service_client::ImportedApiKeysServiceClient,
    issued_api_keys_service_client::IssuedApiKeysServiceClient,
};

/// Sends a token with every call.
#[derive(Clone)]
pub struct Bearer(MetadataValue<Ascii>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        request.metadata_mut().insert("authorization", self.0.clone());
        Ok(request)
    }
}

type Admin = InterceptedService<Channel, Bearer>;

/// The server at KEYHOLD_URL, with the certificate in KEYHOLD_CA_FILE, if there is one.
fn endpoint() -> Endpoint {
    let endpoint = Endpoint::from_shared(env::var("KEYHOLD_URL").expect("KEYHOLD_URL")).expect("a URL");
    let Some(file) = env::var_os("KEYHOLD_CA_FILE") else { return endpoint };
    let pem = fs::read(file).expect("KEYHOLD_CA_FILE");
    let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem));
    endpoint.tls_config(tls).expect("KEYHOLD_CA_FILE")
}

/// A server. Each call of a service gets its own stub, which shares the connection.
pub struct Keyhold {
    pub channel: Channel,
    token: Bearer,
}

impl Keyhold {
    pub fn from_environment() -> Self {
        let token = env::var("KEYHOLD_TOKEN").expect("KEYHOLD_TOKEN");
        let token = Bearer(format!("Bearer {token}").parse().expect("KEYHOLD_TOKEN"));
        Keyhold { channel: endpoint().connect_lazy(), token }
    }

    fn admin(&self) -> Admin {
        InterceptedService::new(self.channel.clone(), self.token.clone())
    }

    pub fn issued(&self) -> IssuedApiKeysServiceClient<Admin> {
        IssuedApiKeysServiceClient::new(self.admin())
    }

    pub fn imported(&self) -> ImportedApiKeysServiceClient<Admin> {
        ImportedApiKeysServiceClient::new(self.admin())
    }

    pub fn keys(&self) -> ApiKeysServiceClient<Admin> {
        ApiKeysServiceClient::new(self.admin())
    }

    pub fn unauthenticated(&self) -> ApiKeysServiceClient<Channel> {
        ApiKeysServiceClient::new(self.channel.clone())
    }

    pub fn jwks(&self) -> DerivedKeysServiceClient<Channel> {
        DerivedKeysServiceClient::new(self.channel.clone())
    }
}
