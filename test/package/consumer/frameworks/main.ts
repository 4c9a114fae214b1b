import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createKeyholdClient, TokenAlgorithm } from "@keyhold/client";
import { requireCredential as expressMiddleware } from "@keyhold/client/express";
import { requireCredential as fastifyHook } from "@keyhold/client/fastify";
import { createKeyVerifier, createTokenVerifier } from "@keyhold/client/verifier";
import express from "express";
import { fastify } from "fastify";

// A program of a user who has installed the package, Fastify and Express. Prints its results as JSON.
const [, baseUrl = ""] = process.argv;
const client = createKeyholdClient({ baseUrl });

const { secret = "" } = await client.issuedApiKeys.createIssuedApiKey({
  name: "packed",
  actorId: "packed",
  scopes: ["read"],
  metadata: { plan: "paid" },
});
const { token } = await client.apiKeys.deriveToken({ credential: secret, algorithm: TokenAlgorithm.JWT });

const online = createKeyVerifier({ client });
const verifier = createTokenVerifier({ baseUrl, online });
const offline = await verifier.verify(token?.token ?? "");

const app = fastify();
app.get(
  "/",
  { onRequest: fastifyHook(verifier, { requiredScopes: ["read"] }) },
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
    offline: offline.ok && "claims" in offline.credential && offline.credential.actorId,
    fastify: [await get(fastifyUrl, token?.token), await get(fastifyUrl)],
    express: [await get(expressUrl, secret), await get(expressUrl)],
  }),
);
await app.close();
server.close();
