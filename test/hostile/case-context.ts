import type { Sql } from "postgres";
import { type Json, paths, type RestClient, restClient } from "../support/rest.ts";
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
}

/** Creates keys and tokens through the API of this server. `sql` is connected to its database. */
export async function createCaseContext(sql: Sql, target: Target): Promise<CaseContext> {
  const rest = restClient(target, Object.fromEntries(target.credentials));
  const issued = (await ask(rest, paths.issued, { name: "well-behaved", actor_id: "actor", scopes: ["read", "write"] }))
    .secret;
  const imported = `well-behaved-raw-key-${process.pid}-${Date.now()}`;
  await ask(rest, paths.imported, { raw_key: imported, name: "well-behaved", actor_id: "actor" });
  const derive = async (algorithm: string) =>
    (await ask(rest, `${paths.keys}:derive`, { credential: issued, algorithm, ttl: "24h" })).token.token;
  return {
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
