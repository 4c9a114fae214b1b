import { type Headers, type Json, PATHS, post, times } from "./client.ts";

/** A typical key, which is issued here and inserted by the baseline of creation. */
export const KEY = {
  name: "Production server",
  actor_id: "user_0123456789",
  scopes: ["documents.read", "documents.write"],
  metadata: { team: "payments" },
} as const;

/** Issues keys through the API and returns their secrets. */
export function issueKeys(url: string, count: number, headers: Headers = {}, key: object = KEY): Promise<string[]> {
  return times(count, async () => (await post(url + PATHS.issued, key, headers)).secret);
}

export type Algorithm = "TOKEN_ALGORITHM_JWT" | "TOKEN_ALGORITHM_MACAROON";

/** Derives a token from each credential. */
export function deriveTokens(url: string, credentials: readonly string[], algorithm: Algorithm): Promise<string[]> {
  return times(credentials.length, async (index) => {
    const body = { credential: credentials[index], algorithm, ttl: "24h" };
    return (await post(url + PATHS.derive, body)).token.token;
  });
}

/** Credentials of a batch. */
export const BATCH_SIZE = 1000;

/** Returns the bodies of batch verifications of these credentials. */
export function batchesOf(credentials: readonly string[]) {
  return Array.from({ length: Math.ceil(credentials.length / BATCH_SIZE) }, (_, index) => ({
    requests: credentials.slice(index * BATCH_SIZE, (index + 1) * BATCH_SIZE).map((credential) => ({ credential })),
  }));
}

/** Verifies credentials in batches of a thousand, and resolves to the verdicts. Throws unless all are valid. */
export async function verifyAll(url: string, credentials: readonly string[], headers: Headers = {}): Promise<Json[]> {
  const batches = batchesOf(credentials);
  const verdicts = await times(
    batches.length,
    async (index) => {
      const { requests = [] } = batches[index] ?? {};
      const { results } = await post(url + PATHS.batchVerify, { requests }, headers);
      if (results.length !== requests.length) throw new Error(`${results.length} verdicts on ${requests.length}`);
      for (const verdict of results) if (!verdict.is_valid) throw new Error(`not valid: ${JSON.stringify(verdict)}`);
      return results;
    },
    2,
  );
  return verdicts.flat();
}
