import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import { fastify } from "fastify";
import { createKeyholdClient, errorReason, TokenAlgorithm } from "keyhold/client";
import { requireCredential as expressMiddleware } from "keyhold/express";
import { requireCredential as fastifyHook } from "keyhold/fastify";
import { createKeyVerifier, createTokenVerifier } from "keyhold/verifier";

// A program of a user who has installed the package. Prints its results as JSON.
const baseUrl = process.env.KEYHOLD_URL ?? "";
const client = createKeyholdClient({ baseUrl });

const { secret = "", issuedApiKey } = await client.issuedApiKeys.createIssuedApiKey({
  name: "packed",
  actorId: "packed",
  scopes: ["read"],
  metadata: { plan: "paid" },
});
const keyId: string | undefined = issuedApiKey?.keyId;
const { token } = await client.apiKeys.deriveToken({ credential: secret, algorithm: TokenAlgorithm.JWT });

const online = createKeyVerifier({ client });
const verifier = createTokenVerifier({ baseUrl, online });
const offline = await verifier.verify(token?.token ?? "");

const app = fastify();
app.get(
  "/",
  { onRequest: fastifyHook(verifier, { scopes: ["read"] }) },
  (request) => `${request.keyhold?.actorId}${request.keyhold?.metadata?.plan ?? ""}`,
);
const fastifyUrl = await app.listen({ port: 0 });

const server = createServer(
  express().get(
    "/",
    expressMiddleware(online, { onError: (error, { url }) => console.error(url, error) }),
    (request, response) => {
      const { actorId, metadata } = request.keyhold ?? {};
      response.send(`${actorId} ${metadata?.plan}`);
    },
  ),
).listen(0);
await once(server, "listening");
const expressUrl = `http://localhost:${(server.address() as AddressInfo).port}`;

const get = async (url: string, credential?: string) => {
  const headers: Record<string, string> = { connection: "close" };
  if (credential !== undefined) headers.authorization = `Bearer ${credential}`;
  const response = await fetch(url, { headers });
  return response.ok ? response.text() : response.status;
};

console.log(
  JSON.stringify({
    hasKeyId: keyId !== undefined,
    offline: offline.ok && "claims" in offline.credential && offline.credential.actorId,
    fastify: [await get(fastifyUrl, token?.token), await get(fastifyUrl)],
    express: [await get(expressUrl, secret), await get(expressUrl)],
    reason: await client.issuedApiKeys.getIssuedApiKey({ keyId: "x" }).catch(errorReason),
  }),
);
await app.close();
server.close();
