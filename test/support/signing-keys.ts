import postgres, { type Sql } from "postgres";
import { deriveKeyRing, parseRootSecret } from "../../src/domain/server-keys.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { propagating } from "../../src/postgres/cluster/change-committer.ts";
import type { Database } from "../../src/postgres/connection/pool.ts";
import { createSigningKeyStore } from "../../src/postgres/signing/signing-key-store.ts";
import { rotateSigningKey, type SigningContext, type SigningKeyStore } from "../../src/signing/signing.ts";
import type { AlgorithmName } from "../../src/token/jwt/algorithms.ts";
import type { NewSigningKey, SigningKeyRecord } from "../../src/token/signing-key.ts";
import { eventually } from "./keyhold.ts";
import { anyServer, noNodes } from "./no-cluster.ts";
import { type Json, paths, type RestClient } from "./rest.ts";
import { ROOT_SECRET } from "./server.ts";

/** A single connection in the form of a pool. */
const overOne = (sql: Sql): Database => ({ run: async (work) => work(sql, { isReplicationCancelled: false }) });

/** Rotates the signing key like the command and returns the new `kid`. `quietly` notifies no server. `algorithm`: null for that of the active key. */
export async function rotateUnder(
  sql: Sql,
  { root = ROOT_SECRET, retired = [] as string[], quietly = false, algorithm = null as AlgorithmName | null } = {},
): Promise<string> {
  const ring = deriveKeyRing(
    { current: parseRootSecret(root), retired: retired.map((one) => parseRootSecret(one)) },
    "signing-key-wrap",
  );
  const context: Omit<SigningContext, "store"> = {
    ring,
    algorithm,
    clock: systemClock,
    random: systemRandom,
    version: () => null,
    renewed: async () => undefined,
  };
  const store = withCamelCase(createSigningKeyStore(overOne(sql), propagating(overOne(sql), noNodes), anyServer));
  const { kid } = await (quietly ? rotateQuietly(sql, { ...context, store }) : rotateSigningKey({ ...context, store }));
  return kid;
}

/** The connections of tests do not rename columns, as those of a server do. */
function withCamelCase(store: SigningKeyStore): SigningKeyStore {
  const rename = (row: object) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [postgres.toCamel(name), value]));
  return { ...store, list: async () => (await store.list()).map((row) => rename(row) as unknown as SigningKeyRecord) };
}

/** Rotates without the notification trigger, as if the notification were lost. */
async function rotateQuietly(sql: Sql, context: SigningContext): Promise<NewSigningKey> {
  const records = await context.store.list();
  return sql.begin(async (transaction) => {
    const replaceActive: SigningKeyStore["replaceActive"] = async (key, now) => {
      await transaction`ALTER TABLE signing_keys DISABLE TRIGGER signing_keys_changed`;
      await transaction`UPDATE signing_keys SET retire_time = ${now} WHERE retire_time IS NULL`;
      await transaction`
        INSERT INTO signing_keys (kid, public_jwk, wrapped, wrap_key_id, create_time)
        VALUES (${key.kid}, ${sql.json({ ...key.publicJwk })}, ${key.wrapped}, ${key.wrapKeyId}, ${now})`;
      await transaction`ALTER TABLE signing_keys ENABLE TRIGGER signing_keys_changed`;
    };
    const store = { ...context.store, list: async () => records, replaceActive };
    return rotateSigningKey({ ...context, store }, { force: true });
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
