// The backend of the page ("backend for frontend"): it has the token, and decides what its user may do. Reads KEYHOLD_URL, KEYHOLD_TOKEN
// and PORT.
import { createKeyholdClient, TokenAlgorithm, VerificationError } from "@keyhold/client";
import express from "express";

const { KEYHOLD_URL: baseUrl = "http://127.0.0.1:4420", KEYHOLD_TOKEN: token, PORT = "3000" } = process.env;

const keyhold = createKeyholdClient({ baseUrl, token });
// In a real backend: the user of the session, whose cookie is SameSite.
const actorId = "user_42";

const app = express();
app.use(express.static(`${import.meta.dirname}/dist`), express.json());

// In a real backend, every route below requires a session, and the rate of its calls is limited.
app.post("/settings", (_request, response) => void response.json({ baseUrl }));

app.post("/keys", async (_request, response) => {
  const key = { name: "console", actorId, scopes: ["read"], ttl: "90d" };
  const { secret, issuedApiKey } = await keyhold.issuedApiKeys.createIssuedApiKey(key);
  response.json({ secret, keyId: issuedApiKey?.keyId });
});

app.post("/verifications", async ({ body }, response) => {
  const { isValid, errorCode = 0 } = await keyhold.apiKeys.verifyApiKey({ credential: String(body.credential) });
  response.json({ isValid, errorCode: VerificationError[errorCode] });
});

app.post("/tokens", async ({ body }, response) => {
  const derivation = { credential: String(body.credential), algorithm: TokenAlgorithm.JWT, ttl: "5m" };
  response.json({ token: (await keyhold.apiKeys.deriveToken(derivation)).token?.token });
});

app.listen(Number(PORT), "localhost");
