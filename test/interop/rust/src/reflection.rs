use prost::Message;
use prost_types::FileDescriptorProto;
use tonic::Status;
use tonic_reflection::pb::{v1, v1alpha};

use crate::{
    client::Keyhold,
    tap::{Outcome, Steps},
};

const SERVICE: &str = "keyhold.v2alpha1.ApiKeysService";

pub async fn server_reflection(keyhold: &Keyhold, ok: &mut Steps<'_>) -> Outcome {
    use v1::{server_reflection_request::MessageRequest, server_reflection_response::MessageResponse};

    let names = match ask(keyhold, MessageRequest::ListServices("*".into())).await? {
        Some(MessageResponse::ListServicesResponse(list)) => list.service.into_iter().map(|one| one.name).collect(),
        _ => vec![],
    };
    ok.step("v1 lists the services", names.iter().any(|name| name == SERVICE), &names)?;
    let names = list_services_alpha(keyhold).await?;
    ok.step("v1alpha lists the services", names.iter().any(|name| name == SERVICE), &names)?;

    let files = match ask(keyhold, MessageRequest::FileContainingSymbol(SERVICE.into())).await? {
        Some(MessageResponse::FileDescriptorResponse(files)) => files.file_descriptor_proto,
        _ => vec![],
    };
    let files = files.iter().map(|file| FileDescriptorProto::decode(file.as_slice())).collect::<Result<Vec<_>, _>>()?;
    let methods: Vec<_> =
        files.iter().flat_map(|file| &file.service).flat_map(|one| &one.method).map(|one| one.name()).collect();
    ok.step("v1 describes a service", methods.contains(&"VerifyApiKey"), methods)
}

async fn ask(
    keyhold: &Keyhold,
    request: v1::server_reflection_request::MessageRequest,
) -> Result<Option<v1::server_reflection_response::MessageResponse>, Status> {
    let mut client = v1::server_reflection_client::ServerReflectionClient::new(keyhold.channel.clone());
    let request = v1::ServerReflectionRequest { host: String::new(), message_request: Some(request) };
    let mut stream = client.server_reflection_info(tokio_stream::once(request)).await?.into_inner();
    Ok(stream.message().await?.and_then(|response| response.message_response))
}

async fn list_services_alpha(keyhold: &Keyhold) -> Result<Vec<String>, Status> {
    use v1alpha::{server_reflection_request::MessageRequest, server_reflection_response::MessageResponse};

    let mut client = v1alpha::server_reflection_client::ServerReflectionClient::new(keyhold.channel.clone());
    let list = MessageRequest::ListServices("*".into());
    let request = v1alpha::ServerReflectionRequest { host: String::new(), message_request: Some(list) };
    let mut stream = client.server_reflection_info(tokio_stream::once(request)).await?.into_inner();
    match stream.message().await?.and_then(|response| response.message_response) {
        Some(MessageResponse::ListServicesResponse(list)) => Ok(list.service.into_iter().map(|one| one.name).collect()),
        _ => Ok(vec![]),
    }
}
