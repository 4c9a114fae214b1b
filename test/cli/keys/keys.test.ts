import { randomUUID } from "node:crypto";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import { newRawKey, table, UNKNOWN_KEY_ID } from "../../support/conformance.ts";
import { issue, paths, verify } from "../../support/rest.ts";
import { useKeysCommand } from "./keys-command.ts";

const command = useKeysCommand();
const { suite, keys, answerOf, rest } = command;

const newPath = () => join(inject("testDir"), `cli-${randomUUID()}`);

describe("an issued key", () => {
  test("is issued", async () => {
    const draft = ["--name", "a bot", "--actor", "team_1", "--scope", "read", "write", "--ttl", "90d"];
    const { issued_api_key: key } = await answerOf(["issue", ...draft, "--metadata", "env=prod", "note=a=b"]);
    expect(key).toMatchObject({ name: "a bot", scopes: ["read", "write"], metadata: { env: "prod", note: "a=b" } });
    expect(key).toHaveProperty("expire_time");
  });

  test("is updated, and got", async () => {
    const { keyId } = await issue(rest(), { name: "a bot", scopes: ["read", "write"], metadata: { env: "prod" } });
    const time = "2033-01-02T03:04:05Z";
    const args = ["update", keyId, "--scope", "read", "--clear-metadata", "--expire-time", time];
    const changed = await answerOf(args);
    expect(changed).toMatchObject({ name: "a bot", scopes: ["read"], metadata: {}, expire_time: time });
    expect(await answerOf(["get", keyId])).toEqual({ ...changed, kind: "KEY_KIND_ISSUED" });
    expect(await answerOf(["update", keyId, "--clear-expiry"])).not.toHaveProperty("expire_time");
    expect(await answerOf(["update", keyId, "--ttl", "1h"])).toHaveProperty("expire_time");
  });

  test("has derived tokens, which are verified and explained", async () => {
    const { keyId, secret } = await issue(rest(), { scopes: ["read"] });
    const claims = ["--ttl", "5m", "--claim", "level=5", "team=red"];
    const { token } = await answerOf(["derive", ...claims, "--audience", "books", "archive"], secret);
    expect(token).toMatchObject({ claims: { level: 5, team: "red" }, audience: ["books", "archive"] });
    const presented = ["--client-ip", "203.0.113.7", "--require-scope", "read"];
    const verdict = { is_valid: true, key_id: keyId, scopes: ["read"] };
    expect(await answerOf(["verify", ...presented, "--audience", "books"], token.token)).toMatchObject(verdict);
    const refused = await keys(["verify", ...presented, "--audience", "other", "--json"], token.token);
    expect([refused.code, JSON.parse(refused.stdout).error_code]).toEqual([7, "VERIFICATION_ERROR_AUDIENCE_MISMATCH"]);
    expect(await answerOf(["explain", keyId, ...presented])).toMatchObject({ is_valid: true, key_id: keyId });
    const explained = await keys(["explain", "--require-scope", "admin"], secret);
    expect(explained.code).toBe(7);
    expect(explained.stdout).toMatch(/^error_code +INSUFFICIENT_SCOPE$/m);
    expect(explained.stdout).toMatch(/^SCOPES +FAIL +the credential lacks admin$/m);
  });

  test("is rotated", async () => {
    const { keyId, secret } = await issue(rest());
    const rotated = await answerOf(["rotate", keyId, "--grace-period", "1h"]);
    expect(rotated.secret).not.toBe(secret);
    expect(await answerOf(["verify", "-", "--no-cache"], `${rotated.secret}\n`)).toMatchObject({ key_id: keyId });
    expect(await verify(rest(), secret)).toMatchObject({ is_valid: true });
  });

  test("is disabled, enabled and revoked", async () => {
    const { keyId } = await issue(rest());
    const disabled = await answerOf(["disable", keyId, "--reason", "paused"]);
    expect(disabled).toMatchObject({ status: "KEY_STATUS_DISABLED", disable_reason: "paused" });
    expect(await answerOf(["enable", keyId])).toMatchObject({ status: "KEY_STATUS_ACTIVE" });
    const why = ["--reason", "key-compromise", "--description", "gone"];
    const revoked = await answerOf(["revoke", keyId, ...why, "--include-descendants"]);
    expect(revoked).toMatchObject({ revocation_reason: "REVOCATION_REASON_KEY_COMPROMISE", descendant_count: 0 });
    const { body } = await rest()("GET", `${paths.issued}/${keyId}`);
    expect(body).toMatchObject({ status: "KEY_STATUS_REVOKED", revocation_description: "gone" });
  });
});

test("scopes are separated by spaces; one with a comma needs JSON", async () => {
  const draft = ["--name", "a bot", "--actor", "team_1", "--scope", "read write", '["a,b"]', "c"];
  const { issued_api_key: key } = await answerOf(["issue", ...draft]);
  expect(key.scopes).toEqual(["read", "write", "a,b", "c"]);
});

test("prints the secret alone on stdout, or writes it to a private file", async () => {
  const draft = ["--name", "a bot", "--actor", "team_2"];
  const shown = await keys(["issue", ...draft]);
  expect(shown.stdout).toMatch(/^kh_v1_[0-9A-Za-z]{94}\n$/);
  expect(shown.stderr).toMatch(/^name +a bot$/m);
  expect(shown.stderr).not.toContain(shown.stdout.trim());

  const file = newPath();
  const kept = await keys(["issue", ...draft, "--out", file, "--json"]);
  const secret = await readFile(file, "utf8");
  expect(secret).toMatch(/^kh_v1_[0-9A-Za-z]{94}\n$/);
  expect(JSON.parse(kept.stdout)).toEqual({ issued_api_key: expect.objectContaining({ name: "a bot" }) });
  expect(kept.stdout + kept.stderr).not.toContain(secret.trim());
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await answerOf(["verify", "--credential-file", file])).toMatchObject({ is_valid: true });

  const again = await keys(["issue", "--name", "never", "--actor", "team_2", "--out", file]);
  expect([again.code, await readFile(file, "utf8")]).toEqual([2, secret]);
  expect((await rest()("GET", `${paths.issued}?filter=name%3D%22never%22`)).body.issued_api_keys).toEqual([]);
});

test("imports a raw key from stdin, lists and deletes it", async () => {
  const rawKey = newRawKey();
  const { key_id } = await answerOf(["import", "--name", "old portal", "--actor", "team_3"], `${rawKey}\r\n`);
  expect(await verify(rest(), rawKey)).toMatchObject({ is_valid: true, key_id });
  expect(await answerOf(["update", key_id, "--name", "older portal"])).toMatchObject({ name: "older portal" });
  const { stdout, stderr } = await keys(["list", "--imported", "--filter", 'actor_id="team_3"']);
  expect(stderr).not.toContain("no keys");
  expect(stdout).toMatch(
    new RegExp(`^NAME +KEY ID .*\\nolder portal +${key_id} +team_3 +ACTIVE +- +20[^ ]+Z +- +(-|20[^ ]+Z)\\n$`),
  );
  await answerOf(["delete", key_id]);
  expect((await rest()("GET", `${paths.imported}/${key_id}`)).status).toBe(404);
  expect((await keys(["list", "--imported", "--filter", 'actor_id="team_3"'])).stderr).toContain("no keys");
});

test("imports a raw key of fewer than eight characters only with --allow-weak", async () => {
  const weak = ["import", "--name", "weak", "--actor", "team_3"];
  const { code, stderr } = await keys(weak, "short\n");
  expect([code, stderr]).toEqual([2, expect.stringContaining("8")]);
  expect((await keys([...weak, "--allow-weak"], "short\n")).code).toBe(0);
});

test("an error in a filter has its position in the option", async () => {
  const { code, stderr } = await keys(["list", "--filter", "actor_id~a"]);
  expect([code, stderr]).toEqual([2, expect.stringContaining("at position 1 ")]);
  const wrong = await keys(["list", "--unused-for", "90"]);
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("--unused-for: must be a duration")]);
});

test("escapes terminal control characters", async () => {
  await issue(rest(), { name: "red \u001b[31m\u202e end", actor_id: "team_4" });
  const { stdout } = await keys(["list", "--filter", 'actor_id="team_4"']);
  expect(stdout).toContain("red \\u{1b}[31m\\u{202e} end");
});

test("revokes a key by its own secret, without an admin token", async () => {
  const { secret } = await issue(rest());
  const alone = { KEYHOLD_TOKEN: "" };
  const { code, stdout } = await keys(["revoke", "--self", "--reason", "key-compromise"], secret, alone);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^status +REVOKED$/m)]);
  expect(await verify(rest(), secret)).toMatchObject({ error_code: "VERIFICATION_ERROR_REVOKED" });
});

test("reads the token from a file and the server from an option", async () => {
  const file = newPath();
  await writeFile(file, `${command.token}\n`, { mode: 0o600 });
  const none = { KEYHOLD_TOKEN: "", KEYHOLD_URL: "http://127.0.0.1:1" };
  const list = ["list", "--limit", "1", "--url", `${suite.server.url}/`];
  expect((await keys([...list, "--token-file", file], undefined, none)).code).toBe(0);
  expect((await keys(list, undefined, { ...none, KEYHOLD_TOKEN_FILE: file })).code).toBe(0);
});

const SECRET = `kh_v1_${"a1".repeat(47)}`;
const NOWHERE = { KEYHOLD_URL: "http://127.0.0.1:1" };

const WITHDRAW_SELF = ["revoke", "--self", "--reason", "privilege-withdrawn"];

const FAILURES: readonly (readonly [string, number, string, readonly string[], Record<string, string>])[] = [
  ["a secret as an argument", 2, "INVALID_ARGUMENT", ["verify", SECRET], {}],
  ["bad input", 2, "INVALID_ARGUMENT", ["issue", "--name", "a", "--actor", "b", "--ttl", "soon"], {}],
  ["scopes with a comma", 2, "INVALID_ARGUMENT", ["issue", "--name", "a", "--actor", "b", "--scope", "c,d"], {}],
  ["scopes to derive with a comma", 2, "INVALID_ARGUMENT", ["derive", "--scope", "c,d"], {}],
  ["an empty scope", 2, "INVALID_ARGUMENT", ["update", UNKNOWN_KEY_ID, "--scope", ""], {}],
  ["a description with --self", 2, "INVALID_ARGUMENT", ["revoke", "--self", "--description", "gone"], {}],
  ["a reason for administrators with --self", 2, "INVALID_ARGUMENT", WITHDRAW_SELF, {}],
  ["a malformed token", 2, "INVALID_ARGUMENT", ["list"], { KEYHOLD_TOKEN: `${SECRET} x` }],
  ["an unknown key", 3, "NOT_FOUND", ["get", UNKNOWN_KEY_ID], {}],
  ["no token", 4, "UNAUTHENTICATED", ["list"], { KEYHOLD_TOKEN: "" }],
  ["an unreachable server", 6, "UNAVAILABLE", ["list"], NOWHERE],
  ["an invalid credential to derive from", 7, "UNAUTHENTICATED", ["derive"], {}],
];

test.each(table(FAILURES))("%s has exit status %i and an error in JSON", async (_, code, status, args, environment) => {
  const ended = await keys([...args, "--json"], SECRET, environment);
  expect({ ...ended, stderr: "" }).toMatchObject({ code, stdout: "" });
  expect(JSON.parse(ended.stderr).error).toMatchObject({ status, message: expect.stringMatching(/./) });
  expect(ended.stderr).not.toContain(SECRET);
});

test("a conflicting key state exits 5 with a readable error", async () => {
  const { keyId } = await issue(rest());
  await rest()("POST", `${paths.keys}/${keyId}:revoke`, {});
  const { code, stderr } = await keys(["rotate", keyId]);
  expect([code, stderr]).toEqual([5, expect.stringMatching(/^keyhold: .*revoked.*\n$/)]);
});
