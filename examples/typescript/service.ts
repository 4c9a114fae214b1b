// A web service that is protected by Keyhold. Reads KEYHOLD_URL, KEYHOLD_TOKEN (scope keyhold:verify) and PORT.

import { requireCredential } from "@keyhold/client/fastify";
import { createKeyVerifier } from "@keyhold/client/verifier";
import { fastify } from "fastify";

const { KEYHOLD_URL: baseUrl = "http://127.0.0.1:4420", KEYHOLD_TOKEN: token, PORT = "3000" } = process.env;

const verifier = createKeyVerifier({ baseUrl, token });

const app = fastify();
app.get("/books", { onRequest: requireCredential(verifier, { requiredScopes: ["read"] }) }, async (request) => {
  return { reader: request.keyhold?.actorId };
});
await app.listen({ port: Number(PORT) });
