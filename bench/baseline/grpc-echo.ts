/** `@grpc/grpc-js` with the messages of a verification, encoded by the codecs of the service, without a lookup. */
import { fromBinary, fromJson, toBinary } from "@bufbuild/protobuf";
import { Server, ServerCredentials, type ServiceDefinition } from "@grpc/grpc-js";
import {
  type VerifyApiKeyRequest,
  VerifyApiKeyRequestSchema,
  type VerifyApiKeyResponse,
  VerifyApiKeyResponseSchema,
} from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { environment } from "./fastify.ts";

const service: ServiceDefinition = {
  verifyApiKey: {
    path: "/keyhold.v2alpha1.ApiKeysService/VerifyApiKey",
    requestStream: false,
    responseStream: false,
    requestSerialize: (request: VerifyApiKeyRequest) => Buffer.from(toBinary(VerifyApiKeyRequestSchema, request)),
    requestDeserialize: (bytes: Buffer) => fromBinary(VerifyApiKeyRequestSchema, bytes),
    responseSerialize: (response: VerifyApiKeyResponse) => Buffer.from(toBinary(VerifyApiKeyResponseSchema, response)),
    responseDeserialize: (bytes: Buffer) => fromBinary(VerifyApiKeyResponseSchema, bytes),
  },
};
const answer = fromJson(VerifyApiKeyResponseSchema, JSON.parse(environment.answer));
const server = new Server();
server.addService(service, {
  verifyApiKey: (_: unknown, reply: (error: null, answer: VerifyApiKeyResponse) => void) => reply(null, answer),
});
server.bindAsync(`127.0.0.1:${environment.port}`, ServerCredentials.createInsecure(), (error) => {
  if (error !== null) throw error;
});
