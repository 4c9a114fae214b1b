import type { Sql } from "postgres";
import { systemClock } from "../../src/lib/clock.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { deriveKeyRing, parseRootSecret } from "../../src/lib/server-keys.ts";
import { createSigningKeyStore, SIGNING_KEYS_CHANNEL } from "../../src/postgres/signing-key-store.ts";
import { rotateSigningKey, type SigningContext } from "../../src/signing/signing.ts";
import { eventually } from "./keyhold.ts";
import { type Json, paths, type RestClient } from "./rest.ts";
import { ROOT_SECRET } from "./server.ts";

/** Rotates the signing key as the command does, and answers the new `kid`. `quietly` tells no server of it. */
export function rotateUnder(sql: Sql, { root = ROOT_SECRET, quietly = false } = {}): Promise<string> {
  const ring = deriveKeyRing({ current: parseRootSecret(root), retired: [] }, "signing-key-wrap");
  const context = { ring, clock: systemClock, random: systemRandom };
  if (!quietly)
    return rotateSigningKey({ ...context, store: createSigningKeyStore({ run: async (work) => work(sql) }) });
  return rotateQuietly(sql, context);
}

/** Without NOTIFY, as if no connection that listens were left. */
async function rotateQuietly(sql: Sql, context: Omit<SigningContext, "store">): Promise<string> {
  const store = createSigningKeyStore({ run: async (work) => work(sql) });
  return sql.begin(async (transaction) => {
    const replaceActive: typeof store.replaceActive = async (key, now) => {
      await transaction`UPDATE signing_keys SET retire_time = ${now} WHERE retire_time IS NULL`;
      await transaction`
        INSERT INTO signing_keys (kid, public_jwk, wrapped, wrap_key_id, create_time)
        VALUES (${key.kid}, ${sql.json({ ...key.publicJwk })}, ${key.wrapped}, ${key.wrapKeyId}, ${now})`;
    };
    return rotateSigningKey({ ...context, store: { ...store, replaceActive } });
  });
}

/** Tells the servers of a change that was made by hand. */
export async function announceChange(sql: Sql): Promise<void> {
  await sql.notify(SIGNING_KEYS_CHANNEL, "changed");
}

/** The `kid` of every published key, in order. */
export async function publishedKids(rest: RestClient): Promise<string[]> {
  const { body } = await rest("GET", paths.jwks);
  return body.keys.map(({ kid }: Json) => kid);
}

/** Resolves when the server publishes these keys, in this order. */
export function untilPublished(rest: RestClient, kids: readonly string[]): Promise<void> {
  return eventually(async () => (await publishedKids(rest)).join() === kids.join());
}

/** The `kid` that a JWT names. */
export function kidOf(token: string): string {
  return JSON.parse(Buffer.from(token.split(".")[0] ?? "", "base64url").toString()).kid;
}
