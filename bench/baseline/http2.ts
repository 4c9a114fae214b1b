/** A bare `node:http2` server: it responds to every complete request with the same gRPC frame and trailers and does not parse it. */
import { createServer, type ServerHttp2Stream } from "node:http2";
import { fromJson, toBinary } from "@bufbuild/protobuf";
import { VerifyApiKeyResponseSchema } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { environment } from "./fastify.ts";

const message = toBinary(
  VerifyApiKeyResponseSchema,
  fromJson(VerifyApiKeyResponseSchema, JSON.parse(environment.answer)),
);
const prefix = Buffer.alloc(5);
prefix.writeUInt32BE(message.length, 1);
const frame = Buffer.concat([prefix, message]);

const server = createServer();
server.on("stream", (stream: ServerHttp2Stream) => {
  stream.on("data", () => {});
  stream.on("end", () => {
    stream.respond({ ":status": 200, "content-type": "application/grpc+proto" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(frame);
  });
});
server.listen(environment.port, "127.0.0.1");
