import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { startFlakyProxy } from "../../client/flaky-proxy.ts";
import { importKey, RFC_3339_UTC, revoke, table, UNKNOWN_KEY_ID } from "../../support/conformance.ts";
import { issue, type Json, paths } from "../../support/rest.ts";
import { useKeysCommand } from "../keys/keys-command.ts";

const command = useKeysCommand();
const { suite, keyhold, keys, rest } = command;

const audit = (...args: string[]) => keyhold(["audit", ...args]);

async function eventsOf(...args: string[]): Promise<Json[]> {
  const { code, stdout, stderr } = await audit(...args, "--json");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

const MAIN = resolve(import.meta.dirname, "../../../src/cli/keyhold.js");

const HOSTILE_ACTOR = 'a "b" \\ c*';

let keyId: string;
let caller: string;
beforeAll(async () => {
  ({ keyId } = await issue(rest(), { name: "ci", actor_id: "team_1", scopes: ["read"] }));
  expect((await keys(["update", keyId, "--name", "old ci"])).code).toBe(0);
  const description = "found in a public repository";
  await revoke(rest(), keyId, { revocation_description: description });
  await importKey(rest(), { actor_id: HOSTILE_ACTOR });
  const [event] = await eventsOf("list", "--limit", "1");
  caller = event.caller.name;
});

test("list shows who changed a key, from where and why, newest first, the caller's own change included", async () => {
  const { code, stdout, stderr } = await audit("list", "--key", keyId);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  // Later pages have the columns of the first one.
  expect((await audit("list", "--key", keyId, "--page-size", "1")).stdout).toBe(stdout);
  const [titles, ...rows] = stdout.trimEnd().split("\n");
  expect(titles).toMatch(/^SEQ +TIME +ACTION +KEY OR RESOURCE +ACTOR +CALLER +CLIENT IP +REASON$/);
  const expected = [
    ["key.revoked", "found in a public repository"],
    ["key.updated", "-"],
    ["key.issued", "-"],
  ];
  expect(caller).toMatch(/^admin-token:[\da-f-]{36}$/);
  const cells = rows.map((row) => row.split(/ {2,}/));
  for (const [seq, time] of cells)
    expect([seq, time]).toEqual([expect.stringMatching(/^\d+$/), expect.stringMatching(RFC_3339_UTC)]);
  expect(cells.map((row) => row.slice(2))).toEqual(
    expected.map(([action, reason]) => [action, keyId, "team_1", caller, "127.0.0.1", reason]),
  );
});

const SELECTIONS: readonly (readonly [args: () => readonly string[], actions: readonly string[]])[] = [
  [() => ["--key", keyId.toUpperCase(), "--action", "key.updated"], ["key.updated"]],
  [() => ["--actor", "team_1", "--action", "key.*"], ["key.revoked", "key.updated", "key.issued"]],
  [() => ["--actor", "team_1", "--action", "ke*y"], []],
  [() => ["--actor", HOSTILE_ACTOR], ["key.imported"]],
  [() => ["--actor", "team_*"], []],
  [() => ["--caller", caller, "--action", "key.i*"], ["key.imported", "key.issued"]],
  [() => ["--caller", "nobody"], []],
  [
    () => ["--key", keyId, "--since", "1h", "--filter", 'action="key.issued" OR action="key.revoked"'],
    ["key.revoked", "key.issued"],
  ],
  [() => ["--key", keyId, "--since", "2030-01-01T00:00:00Z"], []],
  [() => ["--key", keyId, "--until", "1h"], []],
  [() => ["--key", keyId, "--limit", "1"], ["key.revoked"]],
  [() => ["--key", keyId, "--order-by", "seq", "--page-size", "1", "--limit", "2"], ["key.issued", "key.updated"]],
];

test("options of list select events, whatever their values contain", async () => {
  for (const [args, actions] of table(SELECTIONS)) {
    const events = await eventsOf("list", ...args());
    expect([args(), events.map(({ action }) => action)]).toEqual([args(), actions]);
  }
});

test("get shows every field, and each changed field before and after", async () => {
  const [{ seq }] = await eventsOf("list", "--key", keyId, "--action", "key.updated");
  const { stdout, code } = await audit("get", seq);
  expect(code).toBe(0);
  for (const line of [
    new RegExp(`^seq +${seq}$`, "m"),
    new RegExp(`^caller\\.name +${caller}$`, "m"),
    /^caller\.method +admin-token$/m,
    /^rpc +keyhold\.v2alpha1\.IssuedApiKeysService\/UpdateIssuedApiKey$/m,
    /^client_ip +127\.0\.0\.1$/m,
    /^name: ci → old ci$/m,
  ])
    expect(stdout).toMatch(line);
  const [{ seq: first }] = await eventsOf("list", "--key", keyId, "--action", "key.issued");
  expect((await audit("get", first)).stdout).toMatch(/^scopes: - → read$/m);
  const event = JSON.parse((await audit("get", seq, "--json")).stdout);
  expect(event).toEqual((await rest()("GET", `/v2alpha1/admin/auditEvents/${seq}`)).body);
});

test("export writes the log in its order, and the position to resume after", async () => {
  const whole = await audit("export");
  const lines = whole.stdout.trimEnd().split("\n");
  const events = lines.map((line) => JSON.parse(line));
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => String(index)));
  expect(events).toEqual((await eventsOf("list")).reverse());
  expect(whole.stderr).toBe(`to continue, repeat the command with --after-seq ${events.length - 1}\n`);
  const rest = await audit("export", "--after-seq", "1", "--json");
  expect(rest).toMatchObject({
    code: 0,
    stderr: "",
    stdout: lines
      .slice(2)
      .map((line) => `${line}\n`)
      .join(""),
  });
  const none = await audit("export", "--after-seq", String(events.length - 1));
  expect(none).toMatchObject({ code: 0, stdout: "", stderr: whole.stderr });
});

test("export begins with a time, whatever the order in which changes that overlap are recorded", async () => {
  const events = await eventsOf("list", "--key", keyId, "--order-by", "seq");
  const [issued, updated, revoked] = events.map(({ seq }) => Number(seq));
  // The update began long before its time, and committed after the revocation.
  const times = [
    [issued, "2020-01-01T11:59:59Z"],
    [updated, "2020-01-01T12:00:02Z"],
    [revoked, "2020-01-01T12:00:00Z"],
  ] as const;
  for (const [seq, time] of times) await suite.sql`UPDATE audit_events SET time = ${time} WHERE seq = ${seq ?? 0}`;
  const exported = async (since: string) => {
    const { stdout } = await audit("export", "--since", since);
    return stdout
      .trimEnd()
      .split("\n")
      .map((line) => Number(JSON.parse(line).seq))
      .filter((seq) => [issued, updated, revoked].includes(seq));
  };
  expect(await exported("2020-01-01T11:59:59Z")).toEqual([issued, updated, revoked]);
  expect(await exported("2020-01-01T12:00:00Z")).toEqual([updated, revoked]);
  expect(await exported("2020-01-01T12:00:01Z")).toEqual([updated]);
  expect(await exported("1h")).toEqual([]);
});

test("export writes any number of events, reading no page before the previous one is written", async () => {
  const [{ seq: before }] = await eventsOf("list", "--limit", "1");
  for (const part of ["a", "b", "c"]) {
    const requests = Array.from({ length: 1000 }, (_, n) => ({
      raw_key: `exported-${part}-${n}`,
      name: "a",
      actor_id: "b",
    }));
    expect((await rest()("POST", `${paths.imported}:batchCreate`, { requests })).status).toBe(200);
  }
  const proxy = await startFlakyProxy(suite.server);
  onTestFinished(() => proxy.close());
  const args = ["audit", "export", "--after-seq", before];
  const environment = { KEYHOLD_URL: proxy.url, KEYHOLD_TOKEN: command.token };
  // Its output is more than the buffers of a pipe hold, and is not read yet.
  const slow = spawn(process.execPath, [MAIN, ...args], { env: environment, stdio: ["ignore", "pipe", "ignore"] });
  await once(slow.stdout, "readable");
  const { stdout, stderr } = await keyhold(args);
  expect(proxy.sent).toHaveLength(1);
  expect(await text(slow.stdout)).toBe(stdout);
  expect(proxy.sent).toHaveLength(3);
  const seqs = stdout
    .trimEnd()
    .split("\n")
    .map((line) => Number(JSON.parse(line).seq));
  expect(seqs).toEqual(Array.from({ length: 3000 }, (_, index) => Number(before) + 1 + index));
  expect(stderr).toContain(`--after-seq ${Number(before) + 3000}\n`);
});

const FAILURES: readonly (readonly [string, number, string, readonly string[]])[] = [
  ["an invalid key id", 2, "--key: is not a UUID", ["list", "--key", "ci"]],
  ["an invalid time", 2, "--since: must be an RFC 3339 time", ["list", "--since", "2030-13-01T00:00:00Z"]],
  ["an invalid duration", 2, "--since: must be a duration", ["export", "--since", "90"]],
  ["an invalid position", 2, "argument 'seq' is invalid. Must be a whole number.", ["get", "-1"]],
  ["an unknown position", 3, "the audit log has no event 999999999", ["get", "999999999"]],
  ["a filter with an error at its position in the option", 2, "at position 1 ", ["list", "--filter", "actr_id=a"]],
];

test.each(table(FAILURES))("%s has exit status %i", async (_, code, message, args) => {
  expect(await audit(...args)).toMatchObject({ code, stdout: "", stderr: expect.stringContaining(message) });
});

test("the log is for callers with the scope keyhold:audit", async () => {
  const make = async (scope: string) => {
    const { stdout } = await command.adminToken("create", "--name", scope, "--scope", scope, "--json");
    return { KEYHOLD_TOKEN: JSON.parse(stdout).secret };
  };
  const list = ["audit", "list", "--key", UNKNOWN_KEY_ID];
  const reader = await keyhold(list, undefined, await make("keyhold:keys.read"));
  expect(reader).toMatchObject({ code: 4, stdout: "", stderr: expect.stringContaining("keyhold:audit") });
  expect(await keyhold(list, undefined, await make("keyhold:audit"))).toMatchObject({ code: 0, stderr: "no events\n" });
});
