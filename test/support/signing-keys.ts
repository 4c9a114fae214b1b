import type { Sql } from "postgres";
import { deriveKeyRing, parseRootSecret } from "../../src/domain/server-keys.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { propagating } from "../../src/postgres/change-committer.ts";
import type { Database } from "../../src/postgres/pool.ts";
import { createSigningKeyStore } from "../../src/postgres/signing-key-store.ts";
import { rotateSigningKey, type SigningContext } from "../../src/signing/signing.ts";
import { eventually } from "./keyhold.ts";
import { anyServer, noNodes } from "./no-cluster.ts";
import { type Json, paths, type RestClient } from "./rest.ts";
import { ROOT_SECRET } from "./server.ts";

/** A single connection in the form of a pool. */
const overOne = (sql: Sql): Database => ({ run: async (work) => work(sql, { isReplicationCancelled: false }) });

/** Rotates the signing key like the command and returns the new `kid`. `quietly` notifies no server. */
export function rotateUnder(
  sql: Sql,
  { root = ROOT_SECRET, retired = [] as string[], quietly = false } = {},
): Promise<string> {
  const ring = deriveKeyRing(
    { current: parseRootSecret(root), retired: retired.map((one) => parseRootSecret(one)) },
    "signing-key-wrap",
  );
  const context = {
    ring,
    clock: systemClock,
    random: systemRandom,
    version: () => null,
    renewed: async () => undefined,
  };
  if (!quietly)
    return rotateSigningKey({
      ...context,
      store: createSigningKeyStore(overOne(sql), propagating(overOne(sql), noNodes), anyServer),
    });
  return rotateQuietly(sql, context);
}

/** Rotates without the notification trigger, as if the notification were lost. */
async function rotateQuietly(sql: Sql, context: Omit<SigningContext, "store">): Promise<string> {
  const store = createSigningKeyStore(overOne(sql), propagating(overOne(sql), noNodes), anyServer);
  return sql.begin(async (transaction) => {
    const replaceActive: typeof store.replaceActive = async (key, now) => {
      await transaction`ALTER TABLE signing_keys DISABLE TRIGGER signing_keys_changed`;
      await transaction`UPDATE signing_keys SET retire_time = ${now} WHERE retire_time IS NULL`;
      await transaction`
        INSERT INTO signing_keys (kid, public_jwk, wrapped, wrap_key_id, create_time)
        VALUES (${key.kid}, ${sql.json({ ...key.publicJwk })}, ${key.wrapped}, ${key.wrapKeyId}, ${now})`;
      await transaction`ALTER TABLE signing_keys ENABLE TRIGGER signing_keys_changed`;
    };
    return rotateSigningKey({ ...context, store: { ...store, replaceActive } }, { force: true });
  });
}

/** Returns the `kid` of every published key, in order. */
export async function publishedKids(rest: RestClient): Promise<string[]> {
  const { body } = await rest("GET", paths.jwks);
  return body.keys.map(({ kid }: Json) => kid);
}

/** Resolves when the server publishes exactly these keys, in this order. */
export function untilPublished(rest: RestClient, kids: readonly string[]): Promise<void> {
  return eventually(async () => (await publishedKids(rest)).join() === kids.join());
}

/** Returns the `kid` of a JWT. */
export function kidOf(token: string): string {
  return JSON.parse(Buffer.from(token.split(".")[0] ?? "", "base64url").toString()).kid;
}
