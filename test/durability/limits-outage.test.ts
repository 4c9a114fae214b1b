import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { eventually } from "../support/keyhold.ts";
import { linesOf } from "../support/log-lines.ts";
import type { Protocol } from "../support/protocols/call.ts";
import { grpcProtocol } from "../support/protocols/grpc.ts";
import { issue, paths, type RestClient, restClient, verify } from "../support/rest.ts";
import { metricsUrl, scrape, total } from "../support/scrape.ts";
import { startTestServer, type TestServer } from "../support/server.ts";
import { type PostgresServer, startPrimary } from "../support/standby.ts";

let dir: string;
let postgres: PostgresServer;
let server: TestServer;
let rest: RestClient;
let grpc: Protocol;

beforeAll(async () => {
  dir = await mkdtemp(join(inject("testDir"), "limits-outage-"));
  postgres = await startPrimary(dir);
  // Longer than the outage: keys without limits are verified throughout.
  const environment = { KEYHOLD_STALE_GRACE: "10m", KEYHOLD_METRICS_PORT: "0" };
  server = await startTestServer({ ...environment, KEYHOLD_DATABASE_URL: postgres.url() });
  rest = restClient(server);
  grpc = grpcProtocol("gRPC", server.address);
});
afterAll(async () => {
  grpc.close();
  await server.close();
  await postgres.close();
  await rm(dir, { recursive: true, force: true });
});

const ALLOW = { on_outage: "OUTAGE_POLICY_ALLOW" };
/** Without debt, and with leases of 50 ms: verifications need the database. */
const SMALL = { name: "small", quota: 19, window: "1s" };
/** A server whose lease is fresh may admit 150 verifications before it charges them. */
const LARGE = { name: "large", quota: 6_000, window: "1m" };
const QUOTA = { name: "monthly", limit: 1_000, period: "QUOTA_PERIOD_MONTH" };

const KEYS = {
  unlimited: {},
  limited: { rate_limits: [SMALL] },
  "limited, with debt": { rate_limits: [LARGE] },
  "with a quota": { quotas: [QUOTA] },
  allowed: { rate_limits: [{ ...SMALL, ...ALLOW }] },
  "allowed by one of two limits": {
    rate_limits: [
      { ...SMALL, ...ALLOW },
      { ...SMALL, name: "other" },
    ],
  },
};

type Name = keyof typeof KEYS;

async function issueAll(): Promise<ReadonlyMap<Name, string>> {
  const names = Object.keys(KEYS) as Name[];
  return new Map(await Promise.all(names.map(async (name) => [name, (await issue(rest, KEYS[name])).secret] as const)));
}

/** Returns the verdict, or the code and reason of the failure. */
async function overRest(credential: string): Promise<string> {
  const { status, body } = await rest("POST", `${paths.keys}:verify`, { credential });
  return status === 200 ? `${body.is_valid}` : `${body.error.status} ${body.error.details[0].reason}`;
}

async function overGrpc(credential: string): Promise<string> {
  const reply = await grpc.call(ApiKeysService.method.verifyApiKey, { credential });
  if (reply.ok) return `${reply.message.isValid}`;
  return `${reply.code} ${reply.details["google.rpc.ErrorInfo"].reason}`;
}

/** Returns what is answered to each key, over both protocols. */
async function answers(secrets: ReadonlyMap<Name, string>) {
  const all: Partial<Record<Name, readonly string[]>> = {};
  for (const [name, secret] of secrets) all[name] = [await overRest(secret), await overGrpc(secret)];
  return all;
}

const outages = async (outcome: "admitted" | "denied") =>
  total(await scrape(metricsUrl(server.log())), "keyhold_limit_outages_total", { outcome });

const warnings = () =>
  linesOf(server.log()).filter(({ msg }) =>
    msg.startsWith("the database is unreachable or too slow: verifications of keys"),
  );

const VALID = ["true", "true"];
const UNAVAILABLE = ["UNAVAILABLE DATABASE_UNAVAILABLE", "UNAVAILABLE DATABASE_UNAVAILABLE"];
const ALL_VALID = Object.fromEntries(Object.keys(KEYS).map((name) => [name, VALID]));

test("while PostgreSQL is stopped limits deny, unless their outage policy is ALLOW", async () => {
  const secrets = await issueAll();
  expect(await answers(secrets)).toEqual(ALL_VALID);
  await postgres.stop();
  const [unlimited = "", limited = "", large = ""] = (["unlimited", "limited", "limited, with debt"] as const).map(
    (name) => secrets.get(name),
  );
  await eventually(async () => (await verify(rest, unlimited)).stale === true);
  // Tokens that were leased are valid for a second.
  await eventually(async () => (await overRest(large)) !== "true");
  for (let round = 0; round < 5; round++)
    expect(await answers(secrets)).toEqual({
      ...{ unlimited: VALID, allowed: VALID },
      ...{ limited: UNAVAILABLE, "limited, with debt": UNAVAILABLE, "with a quota": UNAVAILABLE },
      "allowed by one of two limits": UNAVAILABLE,
    });
  expect(await outages("admitted")).toBeGreaterThanOrEqual(20);
  expect(await outages("denied")).toBeGreaterThanOrEqual(40);
  expect(warnings()).toHaveLength(1);

  await postgres.start();
  await eventually(async () => (await overRest(limited)) === "true");
  expect(await answers(secrets)).toEqual(ALL_VALID);
  const verdicts = await Promise.all(Array.from({ length: 100 }, () => overGrpc(limited)));
  expect(verdicts).toContain("false");
});
