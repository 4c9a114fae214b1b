/** A bare Fastify route with the bodies of a verification: it parses the JSON and writes the response, without a lookup. */
import { fromBinary, fromJson, toBinary } from "@bufbuild/protobuf";
import Fastify from "fastify";
import { VerifyApiKeyRequestSchema, VerifyApiKeyResponseSchema } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { environment, listen, verdictSchema } from "./fastify.ts";

const fastify = Fastify();
const answer = JSON.parse(environment.answer);
fastify.post("/verify", { schema: verdictSchema }, async () => answer);

/** The same in binary form, with the codecs of the service. */
const message = fromJson(VerifyApiKeyResponseSchema, answer);
fastify.addContentTypeParser("application/proto", { parseAs: "buffer" }, (_, body, done) =>
  done(null, fromBinary(VerifyApiKeyRequestSchema, Buffer.from(body))),
);
fastify.post("/proto", async (_, reply) => {
  reply.type("application/proto");
  return reply.send(Buffer.from(toBinary(VerifyApiKeyResponseSchema, message)));
});
await listen(fastify);
