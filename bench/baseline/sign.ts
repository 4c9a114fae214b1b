/** A bare Fastify route like a derivation: it parses the JSON, signs the service's signing input (Ed25519) and writes the response. */
import { generateKeyPairSync, sign } from "node:crypto";
import Fastify from "fastify";
import { environment, listen } from "./fastify.ts";

const string = { type: "string" };
const strings = { type: "array", items: string };
const claims = { type: "object", additionalProperties: true };
const token = {
  type: "object",
  properties: { token: string, token_id: string, expire_time: string, scopes: strings, claims, audience: strings },
};
const schema = { response: { 200: { type: "object", properties: { token } } } };

const { token: derived } = JSON.parse(environment.answer);
const input = derived.token.slice(0, derived.token.lastIndexOf("."));
const { privateKey } = generateKeyPairSync("ed25519");

const fastify = Fastify();
fastify.post("/derive", { schema }, async () => {
  const signature = sign(null, Buffer.from(input), privateKey).toString("base64url");
  return { token: { ...derived, token: `${input}.${signature}` } };
});
await listen(fastify);
