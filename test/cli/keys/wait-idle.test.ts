import { expect, onTestFinished, test } from "vitest";
import { issue, paths, verify } from "../../support/rest.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { useKeysCommand } from "./keys-command.ts";

const command = useKeysCommand();
const { suite, keys, rest, follow } = command;

const TIMEOUT = 120_000;

const rotate = (keyId: string, grace: string) =>
  rest()("POST", `${paths.issued}/${keyId}:rotate`, { grace_period: grace });

const isValid = async (credential: string) => (await verify(rest(), credential)).is_valid;

/** Makes a rotation and the uses of older secrets as old as if they had been made two hours ago. */
async function age(keyId: string): Promise<void> {
  await suite.sql`
    UPDATE api_keys SET rotate_time = rotate_time - interval '2 hours', secret_uses = (
      SELECT jsonb_object_agg(key, value::timestamptz - interval '2 hours') FROM jsonb_each_text(secret_uses))
    WHERE key_id = ${keyId}`;
}

test("rotate prints the new secret, waits until the old one is idle, and ends its grace period", {
  timeout: TIMEOUT,
}, async () => {
  const { keyId, secret } = await issue(rest());
  const rotating = follow(["rotate", keyId, "--grace-period", "1h", "--wait-idle", "1s"]);
  await rotating.noted(
    /^waiting until \S+Z, unless an older secret is used; kh_v1_….{4}: not used since the rotation$/m,
  );
  const current = rotating.printed.stdout.trim();
  expect([await isValid(secret), await isValid(current)]).toEqual([true, true]);
  // The use has moved the end of the wait.
  await rotating.noted(/: last used at \S+:00Z$/m);
  expect(await isValid(secret)).toBe(true);
  await age(keyId);
  expect(await rotating.ended).toBe(0);
  expect(rotating.printed.stderr).toMatch(/\nunused for 1s: the older secrets are invalid now\n$/);
  expect([await isValid(secret), await isValid(current)]).toEqual([false, true]);
});

test("an interrupted wait changes nothing, and end-grace continues it", { timeout: TIMEOUT }, async () => {
  const { keyId, secret } = await issue(rest());
  await rotate(keyId, "3h");
  const proxy = await TcpProxy.start(suite.server.url);
  onTestFinished(() => proxy.close());
  const waiting = follow(["end-grace", keyId, "--wait-idle", "1h"], proxy.url.replace(/\/$/, ""));
  await waiting.noted(/^waiting until /m);
  await proxy.down();
  await waiting.noted(/; retrying$/m);
  waiting.interrupt();
  expect(await waiting.ended).toBe(130);
  const remedy = `keyhold keys end-grace ${keyId} --wait-idle 1h`;
  expect(waiting.printed).toEqual({ stdout: "", stderr: expect.stringContaining(`to wait again, run: ${remedy}\n`) });
  expect(await isValid(secret)).toBe(true);

  await expect
    .poll(async () => (await suite.sql`SELECT secret_uses FROM api_keys WHERE key_id = ${keyId}`)[0]?.secret_uses, {
      timeout: 20_000,
    })
    .not.toBeNull();
  await age(keyId);
  const { code, stdout } = await keys(["end-grace", keyId, "--wait-idle", "1h", "--json"]);
  expect([code, JSON.parse(stdout).previous_secrets]).toEqual([0, []]);
  expect(await isValid(secret)).toBe(false);
  // Nothing is to be waited for.
  expect((await keys(["end-grace", keyId, "--wait-idle", "1h"])).code).toBe(0);
});

test("a grace period that ends before is reported", { timeout: TIMEOUT }, async () => {
  const { keyId, secret } = await issue(rest());
  const { code, stdout, stderr } = await keys(["rotate", keyId, "--grace-period", "3s", "--wait-idle", "2s"]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/\nthe grace period has ended, before its secrets were unused for 2s\n$/);
  expect([await isValid(secret), await isValid(stdout.trim())]).toEqual([false, true]);
});

test("a key that is revoked meanwhile ends the wait", { timeout: TIMEOUT }, async () => {
  const { keyId } = await issue(rest());
  await rotate(keyId, "1h");
  const waiting = follow(["end-grace", keyId, "--wait-idle", "30m"]);
  await waiting.noted(/^waiting until /m);
  await rest()("POST", `${paths.keys}/${keyId}:revoke`, {});
  expect(await waiting.ended).toBe(5);
  expect(waiting.printed.stderr).toMatch(/is revoked\n$/);
});

test.each([
  [["--wait-idle", "1h"], /--wait-idle: requires --grace-period/],
  [["--grace-period", "1h", "--wait-idle", "60m"], /--wait-idle: must be shorter than --grace-period/],
  [["--grace-period", "1h", "--wait-idle", "soon"], /--wait-idle: must be a duration/],
])("rotate %j is rejected, and rotates nothing", async (args, message) => {
  const { keyId, record } = await issue(rest());
  const { code, stdout, stderr } = await keys(["rotate", keyId, ...args]);
  expect([code, stdout, stderr]).toEqual([2, "", expect.stringMatching(message)]);
  expect((await rest()("GET", `${paths.issued}/${keyId}`)).body.update_time).toBe(record.update_time);
});
