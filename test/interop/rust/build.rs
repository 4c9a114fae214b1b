//! Generates the client from the descriptor set of Keyhold, without protoc.

use std::{error::Error, fs};

use prost::Message;
use prost_types::FileDescriptorSet;

const DESCRIPTORS: &str = "../../../gen/keyhold.binpb";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={DESCRIPTORS}");
    let mut set = FileDescriptorSet::decode(fs::read(DESCRIPTORS)?.as_slice())?;
    // Options such as `google.api.http` need no generated code.
    set.file.retain(|file| ["keyhold.v2alpha1", "google.protobuf"].contains(&file.package()));
    tonic_prost_build::configure().build_server(false).compile_fds(set)?;
    Ok(())
}
