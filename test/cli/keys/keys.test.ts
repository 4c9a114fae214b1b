import { randomUUID } from "node:crypto";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, inject, test } from "vitest";
import { importKey, newRawKey, table, UNKNOWN_KEY_ID, useService } from "../../support/conformance.ts";
import { type Ended, runKeyhold } from "../../support/keyhold.ts";
import { issue, type Json, paths, restClient, verify } from "../../support/rest.ts";
import { ROOT_SECRET } from "../../support/server.ts";

const suite = useService({ KEYHOLD_AUTH: "admin-token" });

let token: string;
beforeAll(async () => {
  const args = ["admin", "token", "create", "--name", "for tests", "--json"];
  const environment = { KEYHOLD_DATABASE_URL: suite.server.databaseUrl, KEYHOLD_ROOT_SECRET: ROOT_SECRET };
  const { stdout } = await runKeyhold(args, environment);
  const { secret, issued_api_key } = JSON.parse(stdout);
  expect(issued_api_key.scopes).toEqual(["keyhold:admin"]);
  token = secret;
});

const keys = (args: readonly string[], input?: string, environment: Record<string, string> = {}): Promise<Ended> =>
  runKeyhold(
    ["keys", ...args],
    { KEYHOLD_URL: suite.server.url, KEYHOLD_TOKEN: token, ...environment },
    input === undefined ? {} : { input },
  );

const rest = () => restClient(suite.server, { authorization: `Bearer ${token}` });

/** Returns the JSON of a command that must succeed. */
async function answerOf(args: readonly string[], input?: string): Promise<Json> {
  const { code, stdout, stderr } = await keys([...args, "--json"], input);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

test("creates admin tokens that are restricted to actors", async () => {
  const environment = { KEYHOLD_DATABASE_URL: suite.server.databaseUrl, KEYHOLD_ROOT_SECRET: ROOT_SECRET };
  const fields = ["--name", "support", "--scope", "keyhold:keys.revoke", "keyhold:keys.read"];
  const restriction = ["--restrict-to", "team_7", "team_8", "--json"];
  const { stdout } = await runKeyhold(["admin", "token", "create", ...fields, ...restriction], environment);
  const { secret, issued_api_key: made } = JSON.parse(stdout);
  expect(made).toMatchObject({ actor_id: "admin", restricted_to_actor_ids: ["team_7", "team_8"] });
  const { issued_api_key: issued } = await answerOf([
    "issue",
    ...fields,
    "--actor",
    "team_7",
    "--restrict-to",
    "team_7",
    "--ttl",
    "30d",
  ]);
  expect(issued).toMatchObject({ actor_id: "team_7", restricted_to_actor_ids: ["team_7"] });
  const own = restClient(suite.server, { authorization: `Bearer ${secret}` });
  expect((await own("GET", paths.issued)).body.issued_api_keys).toMatchObject([{ key_id: issued.key_id }]);
});

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
    expect(await answerOf(["get", keyId])).toEqual(changed);
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

test("restricts keys to addresses, by --allow-ip", async () => {
  const draft = ["--name", "a bot", "--actor", "team_1", "--allow-ip", "203.0.113.0/24", "2001:DB8::/32"];
  const restricted = { ip_restriction: { allowed_cidrs: ["203.0.113.0/24", "2001:db8::/32"] } };
  const { secret, issued_api_key: key } = await answerOf(["issue", ...draft]);
  expect(key).toMatchObject(restricted);
  const raw = newRawKey();
  expect(await answerOf(["import", ...draft], raw)).toMatchObject(restricted);
  const elsewhere = await keys(["verify", "--json", "--client-ip", "192.0.2.1"], secret);
  expect(elsewhere.code).toBe(7);
  expect(JSON.parse(elsewhere.stdout)).toMatchObject({ error_code: "VERIFICATION_ERROR_IP_NOT_ALLOWED" });
  const moved = await answerOf(["update", key.key_id, "--allow-ip", "192.0.2.1"]);
  expect(moved).toMatchObject({ name: "a bot", ip_restriction: { allowed_cidrs: ["192.0.2.1/32"] } });
  expect(await answerOf(["update", key.key_id, "--allow-any-ip"])).not.toHaveProperty("ip_restriction");
  const wrong = await keys(["issue", ...draft, "--allow-ip", "203.0.113.1/24"]);
  expect([wrong.code, wrong.stderr]).toEqual([
    2,
    expect.stringContaining("--allow-ip: has bits after the prefix of 24"),
  ]);
});

test("an admin token is accepted from its addresses only", async () => {
  const args = ["admin", "token", "create", "--name", "elsewhere", "--allow-ip", "203.0.113.0/24", "--json"];
  const environment = { KEYHOLD_DATABASE_URL: suite.server.databaseUrl, KEYHOLD_ROOT_SECRET: ROOT_SECRET };
  const { secret, issued_api_key: key } = JSON.parse((await runKeyhold(args, environment)).stdout);
  expect(key.ip_restriction).toEqual({ allowed_cidrs: ["203.0.113.0/24"] });
  const refused = await keys(["list"], undefined, { KEYHOLD_TOKEN: secret });
  expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining("the admin token is not valid")]);
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
  expect([again.code, await readFile(file, "utf8")]).toEqual([1, secret]);
  expect((await rest()("GET", `${paths.issued}?filter=name%3D%22never%22`)).body.issued_api_keys).toEqual([]);
});

test("imports a raw key from stdin, lists and deletes it", async () => {
  const rawKey = newRawKey();
  const { key_id } = await answerOf(["import", "--name", "old portal", "--actor", "team_3"], `${rawKey}\r\n`);
  expect(await verify(rest(), rawKey)).toMatchObject({ is_valid: true, key_id });
  expect(await answerOf(["update", key_id, "--name", "older portal"])).toMatchObject({ name: "older portal" });
  const { stdout } = await keys(["list", "--imported", "--filter", 'actor_id="team_3"']);
  expect(stdout).toMatch(
    new RegExp(`^KEY ID +NAME .*\\n${key_id} +older portal +team_3 +ACTIVE +- +20[^ ]+Z +- +(-|20[^ ]+Z)\\n$`),
  );
  await answerOf(["delete", key_id]);
  expect((await rest()("GET", `${paths.imported}/${key_id}`)).status).toBe(404);
});

test("a list of many pages is one array, up to the limit", async () => {
  const names = Array.from({ length: 7 }, (_, index) => `page ${index}`);
  for (const name of names) await issue(rest(), { name, actor_id: "team_pages" });
  const filter = ["--filter", 'actor_id="team_pages"', "--page-size", "3"];
  const nameOf = (key: Json) => key.name;
  expect((await answerOf(["list", ...filter])).map(nameOf)).toEqual(names.toReversed());
  expect((await answerOf(["list", ...filter, "--limit", "4"])).map(nameOf)).toEqual(names.toReversed().slice(0, 4));
  const { stdout } = await keys(["list", ...filter]);
  expect(stdout.split("\n").filter((line) => line.startsWith("KEY ID"))).toHaveLength(1);
});

test("lists both kinds, and combines the conditions of all options", async () => {
  const actor = 'team "*\\ 5';
  const fields = { actor_id: actor };
  const soon = (await issue(rest(), { ...fields, ttl: "7d" })).keyId;
  const later = (await issue(rest(), { ...fields, ttl: "90d" })).keyId;
  const imported = (await importKey(rest(), { ...fields, ttl: "7d" })).keyId;
  const young = (await issue(rest(), fields)).keyId;
  const revoked = (await issue(rest(), { ...fields, ttl: "7d" })).keyId;
  await rest()("POST", `${paths.keys}/${revoked}:revoke`, { reason: "REVOCATION_REASON_SUPERSEDED" });
  const old = `01000000${young.slice(8)}`;
  await suite.sql`
    UPDATE api_keys SET key_id = ${old}, create_time = create_time - interval '91 days' WHERE key_id = ${young}`;
  const idsOf = async (...args: string[]) =>
    (await answerOf(["list", "--actor", actor, ...args])).map((key: Json) => key.key_id);

  expect(await idsOf("--kind", "all")).toEqual([revoked, imported, later, soon, old]);
  expect(await idsOf("--imported")).toEqual([imported]);
  expect(await idsOf("--kind", "all", "--expiring-within", "30d", "--status", "active")).toEqual([imported, soon]);
  expect(await idsOf("--kind", "all", "--unused-for", "90d")).toEqual([old]);
  expect(await idsOf("--unused-for", "90d", "--filter", "expire_time:* OR status=KEY_STATUS_REVOKED")).toEqual([]);
  const { stdout } = await keys(["list", "--kind", "all", "--actor", actor, "--limit", "3"]);
  expect(stdout).toMatch(/EXPIRES +LAST USED +KIND\n.* ISSUED\n.* IMPORTED\n.* ISSUED\n$/);
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
  await writeFile(file, `${token}\n`, { mode: 0o600 });
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
