import { create, toBinary } from "@bufbuild/protobuf";
import { fileDesc } from "@bufbuild/protobuf/codegenv2";
import { base64Encode } from "@bufbuild/protobuf/wire";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";

/*
 * Takes the place of the descriptor of protovalidate's options, 18 KB of the first load. The files of the API depend on its name; the server
 * checks the rules.
 */
const file = create(FileDescriptorProtoSchema, { name: "buf/validate/validate.proto", syntax: "proto3" });

export const file_buf_validate_validate = fileDesc(base64Encode(toBinary(FileDescriptorProtoSchema, file)));
