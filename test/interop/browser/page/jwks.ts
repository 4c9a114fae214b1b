import { TokenAlgorithm } from "../../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { createTokenVerifier } from "../../../../src/verifier/index.ts";
import type { Ok } from "../checks.ts";
import { type Clients, type Settings, TRACE_CONTEXT } from "./clients.ts";

/** Fetches the public keys, with the ETag of an earlier response too. */
export async function jwks({ baseUrl }: Settings, ok: Ok): Promise<void> {
  const url = `${baseUrl}/v2alpha1/derivedKeys/jwks.json`;
  let response = await fetch(url, { headers: TRACE_CONTEXT });
  const { keys } = Object(await response.clone().json());
  ok("public keys", Array.isArray(keys) && keys.length > 0, keys);
  ok("public keys: the page reads the ETag", response.headers.has("etag"));
  // Another client may rotate the keys meanwhile.
  for (let attempt = 0; attempt < 3 && response.status === 200; attempt++) {
    const known = response.headers.get("etag") ?? "";
    response = await fetch(url, { headers: { ...TRACE_CONTEXT, "if-none-match": known } });
  }
  ok("public keys: If-None-Match", response.status === 304, response.status);
}

/** Verifies a token in the page, without a call of Keyhold but for its public keys. */
export async function offline({ issued, keys }: Clients, { baseUrl }: Settings, ok: Ok): Promise<void> {
  const { secret } = await issued.createIssuedApiKey({ name: "browser", actorId: "browser", scopes: ["read"] });
  const { token } = await keys.deriveToken({ credential: secret, algorithm: TokenAlgorithm.JWT });
  const verifier = createTokenVerifier({ baseUrl });
  const verdict = await verifier.verify(token?.token ?? "");
  ok("a JWT verifies offline", verdict.ok && verdict.credential.actorId === "browser", verdict);
  const forged = await verifier.verify(`${token?.token}`.replace(/.{9}$/, "AAAAAAAAA"));
  ok("a forged JWT does not", !forged.ok, forged);
}
