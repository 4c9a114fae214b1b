import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { toConfig } from "../../src/server/config/config.ts";
import { startService } from "../../src/server/start.ts";
import { derive, importKey, newRawKey, succeeded, table, useService, withQuery } from "../support/conformance.ts";
import { type Answer, issue, type Json, paths, type RestClient, restClient, verify } from "../support/rest.ts";
import { ROOT_SECRET, startTestServer, type TestServer } from "../support/server.ts";
import { kidOf, publishedKids, rotateUnder, untilPublished } from "../support/signing-keys.ts";

const OLD = ROOT_SECRET;
const NEW = randomBytes(32).toString("base64url");
const LOST = randomBytes(32).toString("base64url");

const suite = useService({ KEYHOLD_CACHE_SIZE: "0" });
const { rest } = suite;

/** One of each thing that depends on a root secret. */
interface Made {
  readonly credentials: Readonly<Record<string, string>>;
  readonly issueRequest: Json;
  readonly issuedKeyId: string;
  readonly importRequest: Json;
  readonly importedKeyId: string;
  readonly pageToken: string;
}

async function makeEverything(): Promise<Made> {
  const draft = { name: "n", actor_id: "a", scopes: ["read"] };
  const issueRequest = { ...draft, request_id: randomBytes(8).toString("hex") };
  const importRequest = { ...draft, raw_key: newRawKey(), request_id: randomBytes(8).toString("hex") };
  const { secret, keyId } = await issue(rest, issueRequest);
  const { keyId: importedKeyId, rawKey } = await importKey(rest, importRequest);
  const older = await issue(rest);
  const rotated = await rest("POST", `${paths.issued}/${older.keyId}:rotate`, { grace_period: "30d" });
  const credentials = {
    "an issued secret": secret,
    "a secret in its grace period": older.secret,
    "the secret after it": rotated.body.secret,
    "an imported raw key": rawKey,
    "a JWT": (await derive(rest, secret)).token,
    "a macaroon": (await derive(rest, rawKey, { algorithm: "TOKEN_ALGORITHM_MACAROON" })).token,
  };
  const page = await rest("GET", `${paths.issued}?page_size=1`);
  return {
    credentials,
    issueRequest,
    issuedKeyId: keyId,
    importRequest,
    importedKeyId,
    pageToken: page.body.next_page_token,
  };
}

const page = (token: string): Promise<Answer> =>
  rest("GET", withQuery(paths.issued, { page_size: "1", page_token: token }));

async function expectAllGood({ credentials, ...made }: Made): Promise<void> {
  for (const [what, credential] of table(Object.entries(credentials)))
    expect({ what, ...(await verify(rest, credential)) }).toMatchObject({ what, is_valid: true });
  succeeded(await page(made.pageToken));
  const repeated = succeeded(await rest("POST", paths.issued, made.issueRequest));
  expect(repeated).toEqual({ issued_api_key: expect.objectContaining({ key_id: made.issuedKeyId }) });
  expect(succeeded(await rest("POST", paths.imported, made.importRequest)).key_id).toBe(made.importedKeyId);
  const again = { ...made.importRequest, request_id: undefined };
  expectReason(await rest("POST", paths.imported, again), 409, "RAW_KEY_ALREADY_EXISTS");
  const batch = { requests: [again, { ...again, raw_key: newRawKey() }] };
  const { results } = succeeded(await rest("POST", `${paths.imported}:batchCreate`, batch));
  expect(results[0].error_code).toBe("BATCH_CREATE_IMPORTED_API_KEYS_ERROR_ALREADY_EXISTS");
}

function expectReason({ status, body }: Answer, code: number, reason: string): void {
  expect({ status, reason: body.error?.details[0].reason }).toEqual({ status: code, reason });
}

const environment = (root: string, ...retired: string[]) => ({
  KEYHOLD_ROOT_SECRET: root,
  KEYHOLD_ROOT_SECRETS_RETIRED: retired.join(","),
});

/** Starts another server on a free port, with the command's configuration. */
function start(root: string, ...retired: string[]) {
  const database = { KEYHOLD_DATABASE_URL: suite.server.databaseUrl, KEYHOLD_PORT: "0" };
  return startService(toConfig({ ...database, ...environment(root, ...retired) }), pino({ level: "silent" }));
}

// These tests run in order: the old root secret, both, only the new one.
describe("the root secret is rotated:", () => {
  let ofOld: Made;
  let ofNew: Made;
  let oldKid: string;
  let newKid: string;
  beforeAll(async () => {
    ofOld = await makeEverything();
    oldKid = kidOf(ofOld.credentials["a JWT"] ?? "");
    await suite.server.restart(environment(NEW, OLD));
  });

  test("with the old one retired, everything created with it still works", async () => {
    await expectAllGood(ofOld);
    expect(await publishedKids(rest)).toEqual([oldKid]);
  });

  test("with the old one retired, new keys and tokens work", async () => {
    ofNew = await makeEverything();
    await expectAllGood(ofNew);
  });

  test("a server with only the new one refuses to start while the signing key needs the old one, and prints the remedy", async () => {
    await expect(start(NEW)).rejects.toThrow(
      new RegExp(
        `the signing key ${oldKid} cannot be unwrapped: .*\`keyhold signing-keys rotate\` before you remove it`,
      ),
    );
  });

  test("after a rotation of the signing key the old one may be dropped", async () => {
    newKid = await rotateUnder(suite.sql, { root: NEW, retired: [OLD] });
    await untilPublished(rest, [newKid, oldKid]);
    ofNew = await makeEverything();
    expect(kidOf(ofNew.credentials["a JWT"] ?? "")).toBe(newKid);
    await suite.server.restart(environment(NEW));
    await expectAllGood(ofNew);
  });

  test("with only the new one, keys and tokens of the old one are refused", async () => {
    const codes = await Promise.all(
      Object.entries(ofOld.credentials).map(async ([what, credential]) => [
        what,
        (await verify(rest, credential)).error_code?.replace("VERIFICATION_ERROR_", ""),
      ]),
    );
    expect(Object.fromEntries(codes)).toEqual({
      "an issued secret": "SIGNATURE_INVALID",
      "a secret in its grace period": "SIGNATURE_INVALID",
      "the secret after it": "SIGNATURE_INVALID",
      "an imported raw key": "NOT_FOUND",
      "a JWT": "SIGNATURE_INVALID",
      "a macaroon": "SIGNATURE_INVALID",
    });
    expectReason(await page(ofOld.pageToken), 400, "INVALID_ARGUMENT");
    expectReason(await rest("POST", paths.issued, ofOld.issueRequest), 409, "REQUEST_ID_REUSED");
    expectReason(await rest("POST", paths.imported, ofOld.importRequest), 409, "REQUEST_ID_REUSED");
  });

  test("with only the new one, the signing key of the old one is no longer published, which is logged once", async () => {
    expect(await publishedKids(rest)).toEqual([newKid]);
    await verify(rest, ofOld.credentials["a JWT"] ?? "");
    const lines = suite.server
      .log()
      .split("\n")
      .filter((line) => line.includes("signing key cannot be unwrapped"));
    expect(lines).toEqual([expect.stringContaining(oldKid)]);
  });

  test("with only the new one, a key of the old one gets a valid secret by rotation", async () => {
    const { secret } = succeeded(await rest("POST", `${paths.issued}/${ofOld.issuedKeyId}:rotate`, {}));
    expect(await verify(rest, secret)).toMatchObject({ is_valid: true, key_id: ofOld.issuedKeyId });
  });

  test("a server with an unrelated root secret refuses to start and creates no signing key", async () => {
    await expect(start(LOST)).rejects.toThrow(/cannot be unwrapped/);
    await expect(start(LOST, OLD)).rejects.toThrow(/cannot be unwrapped/);
    expect(await publishedKids(rest)).toEqual([newKid]);
  });
});

describe("several servers adopt a new root secret one after the other, each first as a retired one:", () => {
  const newer = randomBytes(32).toString("base64url");
  let behind: TestServer;
  let ahead: TestServer;
  beforeAll(async () => {
    const database = { KEYHOLD_DATABASE_URL: suite.server.databaseUrl };
    behind = await startTestServer({ ...database, ...environment(NEW, newer) });
    ahead = await startTestServer({ ...database, ...environment(newer, NEW) });
  });
  afterAll(() => Promise.all([behind.close(), ahead.close()]));

  test("each accepts keys and tokens of the other", async () => {
    const clients: RestClient[] = [restClient(behind), restClient(ahead)];
    await rotateUnder(suite.sql, { root: newer, retired: [NEW] });
    for (const [maker, taker] of [clients, [...clients].reverse()]) {
      if (maker === undefined || taker === undefined) throw new Error("two servers");
      const { secret } = await issue(maker);
      const { rawKey } = await importKey(maker);
      const { token } = await derive(maker, secret);
      for (const credential of [secret, rawKey, token])
        expect(await verify(taker, credential)).toMatchObject({ is_valid: true });
      const again = { name: "n", actor_id: "a", raw_key: rawKey };
      expectReason(await taker("POST", paths.imported, again), 409, "RAW_KEY_ALREADY_EXISTS");
    }
  });
});
