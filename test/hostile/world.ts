import type { Sql } from "postgres";
import { type Json, paths, type RestClient, restClient } from "../support/rest.ts";
import { createReferences, type References } from "./references.ts";
import type { Target } from "./target.ts";
import { createWitness, type Witness } from "./witness.ts";

/** Credentials that are valid, each of another type. */
export interface Credentials {
  readonly issued: string;
  readonly imported: string;
  readonly jwt: string;
  readonly macaroon: string;
}

/** What cases are made of besides choices. */
export interface World {
  readonly witness: Witness;
  readonly credentials: Credentials;
  readonly references: References;
}

/** Makes keys and tokens by an honest client of this server. `sql` is connected to its database. */
export async function createWorld(sql: Sql, target: Target): Promise<World> {
  const rest = restClient(target, Object.fromEntries(target.credentials));
  const issued = (await ask(rest, paths.issued, { name: "honest", actor_id: "actor", scopes: ["read", "write"] }))
    .secret;
  const imported = `honest-raw-key-${process.pid}-${Date.now()}`;
  await ask(rest, paths.imported, { raw_key: imported, name: "honest", actor_id: "actor" });
  const derive = async (algorithm: string) =>
    (await ask(rest, `${paths.keys}:derive`, { credential: issued, algorithm, ttl: "24h" })).token.token;
  return {
    witness: await createWitness(sql, rest),
    credentials: {
      issued,
      imported,
      jwt: await derive("TOKEN_ALGORITHM_JWT"),
      macaroon: await derive("TOKEN_ALGORITHM_MACAROON"),
    },
    references: await createReferences(),
  };
}

async function ask(rest: RestClient, path: string, body: unknown): Promise<Json> {
  const answer = await rest("POST", path, body);
  if (answer.status !== 200) throw new Error(`POST ${path} answered ${answer.status}: ${answer.text}`);
  return answer.body;
}
