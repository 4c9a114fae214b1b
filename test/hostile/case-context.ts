import { randomUUID } from "node:crypto";
import type { Sql } from "postgres";
import { eventually } from "../support/keyhold.ts";
import { type Json, paths, type RestClient } from "../support/rest.ts";
import { createExecutionMonitor, type ExecutionMonitor } from "./execution-monitor.ts";
import { createReferences, type References } from "./references.ts";
import type { Target } from "./target.ts";

/** Valid credentials, one of each type. */
export interface Credentials {
  readonly issued: string;
  readonly imported: string;
  readonly jwt: string;
  readonly macaroon: string;
}

/** The data from which cases are generated, in addition to random choices. */
export interface CaseContext {
  readonly monitor: ExecutionMonitor;
  readonly credentials: Credentials;
  readonly references: References;
  /** Returns the id of a key that the well-behaved client may revoke; undefined if none is left. */
  readonly takeRevocable: () => string | undefined;
  /** Creates such keys. */
  readonly addRevocable: (target: Target) => Promise<void>;
}

/** Enough for one batch of cases. */
const REVOCABLE = 100;

/** Creates keys and tokens through the API of this server. `sql` is connected to its database. */
export async function createCaseContext(sql: Sql, target: Target): Promise<CaseContext> {
  const rest = target.operator;
  const issued = (await ask(rest, paths.issued, { name: "well-behaved", actor_id: "actor", scopes: ["read", "write"] }))
    .secret;
  const imported = `well-behaved-raw-key-${process.pid}-${Date.now()}`;
  await ask(rest, paths.imported, { raw_key: imported, name: "well-behaved", actor_id: "actor" });
  const derive = async (algorithm: string) =>
    (await ask(rest, `${paths.keys}:derive`, { credential: issued, algorithm, ttl: "24h" })).token.token;
  const revocable: string[] = [];
  return {
    takeRevocable: () => revocable.pop(),
    addRevocable: async (target) => {
      const requests = Array.from({ length: REVOCABLE - revocable.length }, () => {
        return { raw_key: randomUUID(), name: "revocable", actor_id: "actor" };
      });
      if (requests.length === 0) return;
      const client = target.operator;
      // The calls of a flood may not have ended.
      await eventually(async () => {
        const { status, body } = await client("POST", `${paths.imported}:batchCreate`, { requests });
        if (status === 200) revocable.push(...body.results.map((result: Json) => result.imported_api_key.key_id));
        return status === 200;
      });
    },
    monitor: await createExecutionMonitor(sql, rest),
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
