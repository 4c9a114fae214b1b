import { randomUUID } from "node:crypto";
import { afterEach, expect, test } from "vitest";
import { useGuardedService } from "../../support/guarded.ts";
import { eventually } from "../../support/keyhold.ts";
import { countWaiting, lockRow, lockTable } from "../../support/locked-row.ts";
import { issue, paths, type RestClient } from "../../support/rest.ts";

/** What is reserved for revoking while one caller floods the server. */

const suite = useGuardedService();
const { rest } = suite;

let flooding: RestClient;
let floodingKeyId: string;
/** Ends the flood. */
let release: () => Promise<unknown> = async () => {};

afterEach(() => release());

const REASON = { reason: "REVOCATION_REASON_KEY_COMPROMISE" };
const revoke = async (as: RestClient, keyId: string) =>
  (await as("POST", `${paths.keys}/${keyId}:revoke`, REASON)).status;
const disable = async (as: RestClient, keyId: string) =>
  (await as("POST", `${paths.keys}/${keyId}:disable`, {})).status;
const list = async (as: RestClient) => (await as("GET", paths.issued)).status;

async function createFloodingCaller(): Promise<void> {
  const { secret, keyId } = await issue(rest, { scopes: ["keyhold:admin"], ttl: "1h" });
  flooding = suite.as(secret);
  floodingKeyId = keyId;
  expect(await list(flooding)).toBe(200);
}

/** Sends batches of unknown raw keys, whose look-ups wait for a table that only raw keys are in, until one is rejected. */
async function floodVerifications(): Promise<void> {
  const unlock = await lockTable(suite.sql, "raw_key_digests");
  const rejected = Promise.withResolvers<void>();
  const batches = Array.from({ length: 12 }, async () => {
    const requests = Array.from({ length: 1000 }, () => ({ credential: randomUUID() }));
    const { text } = await flooding("POST", `${paths.keys}:batchVerify`, { requests });
    if (text.includes("OVERLOADED")) rejected.resolve();
  });
  release = async () => {
    await unlock();
    await Promise.all(batches);
  };
  await rejected.promise;
}

/** Sends updates of a key whose row is locked, until every connection for changes waits for it. */
async function floodChanges(): Promise<void> {
  const { keyId } = await issue(rest);
  const row = await lockRow(suite.sql, keyId);
  const updates = Array.from({ length: 12 }, (_, i) =>
    flooding("PATCH", `${paths.issued}/${keyId}`, { name: `name ${i}` }),
  );
  release = () => Promise.all([row.release(), ...updates]);
  await eventually(async () => (await countWaiting(suite.sql)) === 10);
}

test.each([
  ["verifications", floodVerifications, 503],
  ["changes", floodChanges, 200],
])(
  "during a flood of %s keys are revoked and disabled, by others and by the flooding caller",
  async (_, flood, own) => {
    await createFloodingCaller();
    const keys = [await issue(rest), await issue(rest), await issue(rest), await issue(rest)] as const;
    const newcomer = await issue(rest, { scopes: ["keyhold:admin"], ttl: "1h" });
    await flood();
    // Its share is used up, and those of others are not.
    expect(await list(flooding)).toBe(own);
    expect(await list(rest)).toBe(200);
    const [one, two, three, four] = keys;
    expect(await revoke(rest, one.keyId)).toBe(200);
    expect(await disable(rest, two.keyId)).toBe(200);
    // Neither token has been used before, so both are looked up.
    expect(await revoke(suite.as(newcomer.secret), three.keyId)).toBe(200);
    expect((await suite.as(null)("POST", paths.selfRevoke, { credential: four.secret, ...REASON })).status).toBe(200);
    expect((await rest("GET", "/health/ready")).status).toBe(200);
    expect(await revoke(flooding, floodingKeyId)).toBe(200);
    expect(await list(flooding)).toBe(401);
  },
);
