import { stat, writeFile } from "node:fs/promises";
import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { derive, importKey, newRawKey, revoke, succeeded } from "../support/conformance.ts";
import { adopted, hmacOf, importHashed, sha256Of } from "../support/hashed-keys.ts";
import { runKeyhold } from "../support/keyhold.ts";
import { issue, type Json, paths, verify } from "../support/rest.ts";
import { ROOT_SECRET } from "../support/server.ts";
import { type Receiver, startReceiver } from "../support/webhook-receiver.ts";
import { useRootSecretFile } from "./root-secret-file.ts";

const HMAC_KEY = "the key of another system's HMACs";

const file = useRootSecretFile({ KEYHOLD_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8" });
const { environment, rest, keyhold, expectNoSecret } = file;

/** The next server starts when the previous lease has ended for every observer, after at most 3 s. */
async function restart(): Promise<void> {
  await file.stop();
  await file.start();
}

async function list(): Promise<Json[]> {
  const { stdout, code } = await keyhold("secrets", "list", "--json");
  expect(code).toBe(0);
  return JSON.parse(stdout);
}

// These tests run in order.
describe("rotating the root secret of a running server:", () => {
  const made: string[] = [];
  const hashed: string[] = [];
  const webhookSecrets: string[] = [];
  let receiver: Receiver;
  let staged: string;
  let oldKey: string;

  beforeAll(async () => {
    receiver = await startReceiver();
  });
  afterAll(() => receiver.close());

  async function makeOneOfEach(): Promise<string> {
    const { secret, keyId } = await issue(rest);
    const { rawKey } = await importKey(rest);
    made.push(secret, rawKey, (await derive(rest, secret)).token);
    return keyId;
  }

  async function expectAllGood(): Promise<void> {
    for (const credential of made) expect(await verify(rest, credential)).toMatchObject({ is_valid: true });
  }

  /** Expects that a webhook is signed with each secret of the endpoint. */
  async function expectSigned(): Promise<void> {
    const before = receiver.received.length;
    succeeded(await rest("POST", `${paths.webhookEndpoints}/w:sendTestEvent`, {}));
    await vi.waitFor(() => expect(receiver.received).toHaveLength(before + 1), { timeout: 10_000 });
    const [{ text, headers }] = receiver.received.slice(before) as [Receiver["received"][0]];
    for (const secret of webhookSecrets) expect(new Webhook(secret).verify(text, headers)).toMatchObject({});
  }

  test("rotation without --stage is rejected while a server runs", async () => {
    oldKey = await makeOneOfEach();
    const endpoint = { endpoint_id: "w", url: receiver.url, event_types: ["signing_key.rotated"] };
    webhookSecrets.push(succeeded(await rest("POST", paths.webhookEndpoints, endpoint)).secret);
    const rotated = await rest("POST", `${paths.webhookEndpoints}/w:rotateSecret`, { grace_period: "1h" });
    webhookSecrets.push(succeeded(rotated).secret);
    // Known by a hash with a text that is wrapped, and by an HMAC, and verified for the first time under the new root secret.
    await rest("POST", paths.hmacKeys, { hmac_key_id: "h", key: HMAC_KEY, encoding: "TEXT_ENCODING_UTF8" });
    const [salted, keyed] = [newRawKey(), newRawKey()];
    await importHashed(rest, {}, salted, sha256Of(salted, "salt:"));
    await importHashed(rest, {}, keyed, hmacOf(keyed, "h", HMAC_KEY));
    hashed.push(salted, keyed);
    const before = await file.secrets();
    expect(await keyhold("secrets", "rotate")).toMatchObject({ code: 1, stderr: expect.stringContaining("--stage") });
    expect(await file.secrets()).toEqual(before);
  });

  test("a staged root secret is accepted, not used", async () => {
    const ended = await keyhold("secrets", "rotate", "--stage");
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    await expectNoSecret(ended);
    expect((await file.secrets())[0]).toBe(ROOT_SECRET);
    expect((await stat(file.path)).mode & 0o777).toBe(0o640);
    const [current, added] = await list();
    expect(current).toMatchObject({
      state: "current",
      issued: 1,
      imported: 3,
      in_grace: 0,
      signing_keys: 2,
      hash_secrets: 2,
      webhook_secrets: 2,
      needed: true,
    });
    expect(added).toMatchObject({ state: "staged", issued: 0, imported: 0, signing_keys: 0, needed: true });
    staged = added?.id;
    const { stdout } = await keyhold("secrets", "list");
    expect(stdout).toMatch(new RegExp(`^${staged} +staged +0 +0 +0 +0 +0 +0 +keep: not used yet`, "m"));
    expect(stdout).not.toContain("dropped");
    expect(ended.stdout).toContain(`keyhold secrets promote ${staged}`);
  });

  test("promotion is rejected until every server has restarted", async () => {
    const refused = await keyhold("secrets", "promote", staged);
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("not restarted since") });
    expect(await keyhold("secrets", "promote", "0123456789abcdef")).toMatchObject({ code: 2 });
    expect((await file.secrets())[0]).toBe(ROOT_SECRET);
  });

  test("promotion wraps the signing keys, and a server that has it staged keeps working", async () => {
    await restart();
    const ended = await keyhold("secrets", "promote", staged);
    expect(ended).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("Signing keys wrapped with this root secret: 2."),
    });
    expect(ended.stdout).toContain("Hash secrets wrapped: 2.\nWebhook secrets wrapped: 1.\n");
    await expectNoSecret(ended);
    expect((await file.secrets())[1]).toBe(ROOT_SECRET);
    await makeOneOfEach();
    await expectAllGood();
    await expectSigned();
    expect(await keyhold("secrets", "promote", staged)).toMatchObject({ code: 0 });
  });

  test("secrets list shows what depends on the old one, and what is missing without it", async () => {
    await restart();
    await makeOneOfEach();
    await expectAllGood();
    const { secret } = (await rest("POST", `${paths.issued}/${oldKey}:rotate`, { grace_period: "1h" })).body;
    made.push(secret);
    const [current, retired] = await list();
    expect(current).toMatchObject({
      id: staged,
      state: "current",
      issued: 2,
      imported: 1,
      signing_keys: 2,
      hash_secrets: 2,
      webhook_secrets: 2,
    });
    expect(retired).toMatchObject({
      state: "retired",
      issued: 1,
      imported: 4,
      in_grace: 1,
      signing_keys: 0,
      hash_secrets: 0,
      webhook_secrets: 0,
      needed: true,
    });
    await expectAllGood();
    const [first = ""] = await file.secrets();
    const alone = await runKeyhold(["secrets", "list"], {
      KEYHOLD_DATABASE_URL: environment().KEYHOLD_DATABASE_URL,
      KEYHOLD_ROOT_SECRET: first,
    });
    expect(alone.stdout).toMatch(new RegExp(`^${retired?.id} +missing +1 +4 +1 +0 +0 +0 +missing: `, "m"));
  });

  test("keys known by a hash are adopted under the new root secret", async () => {
    for (const rawKey of hashed) {
      const { is_valid, key_id } = await verify(rest, rawKey);
      expect(is_valid).toBe(true);
      await adopted(rest, key_id);
    }
    const [current, retired] = await list();
    expect([current?.imported, retired?.imported]).toEqual([3, 2]);
  });

  test("it can be dropped when nothing depends on it", async () => {
    const { body } = await rest("GET", paths.issued);
    const imported = (await rest("GET", paths.imported)).body;
    for (const { key_id } of [...body.issued_api_keys, ...imported.imported_api_keys]) await revoke(rest, key_id);
    expect((await list()).map(({ needed }) => needed)).toEqual([true, false]);
    const { stdout, stderr } = await keyhold("secrets", "list");
    expect(stdout).toMatch(/ retired +0 +0 +0 +0 +0 +0 +can be removed$/m);
    expect(stderr).toContain("Macaroons");
    await writeFile(file.path, `${(await file.secrets())[0]}\n`);
    await restart();
    await expectSigned();
  });
});
