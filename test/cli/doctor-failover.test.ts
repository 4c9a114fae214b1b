import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { evaluateHosts } from "../../src/cli/doctor/checks/database-url.ts";
import { evaluateReplication } from "../../src/cli/doctor/checks/replication.ts";
import { runChecks } from "../../src/cli/doctor/run-checks.ts";
import { serverRole } from "../../src/embedded-postgres/cluster.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { parseStandbyNames } from "../../src/postgres/connection/replication.ts";
import { toConfig } from "../../src/server/config/config.ts";
import { table } from "../support/conformance.ts";
import { freePort } from "../support/free-port.ts";
import { ROOT_SECRET } from "../support/server.ts";
import { type PostgresServer, startPrimary } from "../support/standby.ts";

const LOSS = "a promoted standby may lack acknowledged revocations";

let dir: string;
let primary: PostgresServer;
let standby: PostgresServer;

beforeAll(async () => {
  dir = await mkdtemp(join(inject("testDir"), "doctor-failover-"));
  primary = await startPrimary(dir);
  expect(await found("replication")).toEqual(["ok one server without standbys: nothing to fail over to"]);
  standby = await primary.addStandby("s1");
});

afterAll(async () => {
  await standby.close();
  await primary.close();
  await rm(dir, { recursive: true, force: true });
});

/** Returns the findings of a check as `level message`. */
async function found(check: string, more: Record<string, string> = {}): Promise<string[]> {
  const environment = { KEYHOLD_DATABASE_URL: primary.url(), KEYHOLD_ROOT_SECRET: ROOT_SECRET, KEYHOLD_PORT: "0" };
  const findings = await runChecks(toConfig({ ...environment, ...more }), systemClock);
  for (const { level, remedy } of findings) expect(remedy !== null).toBe(level !== "ok");
  expect(JSON.stringify(findings)).not.toContain(new URL(primary.url()).password);
  return findings.filter((finding) => finding.check === check).map(({ level, message }) => `${level} ${message}`);
}

/** Settings of the primary for one test. */
async function during(settings: Record<string, string>): Promise<void> {
  onTestFinished(() => primary.configure(Object.fromEntries(Object.keys(settings).map((name) => [name, null]))));
  await primary.configure(settings);
}

async function seeStates(): Promise<void> {
  await primary.admin.unsafe(`GRANT pg_read_all_stats TO ${serverRole}`);
  onTestFinished(async () => void (await primary.admin.unsafe(`REVOKE pg_read_all_stats FROM ${serverRole}`)));
}

const UNKNOWN = `ok replication state unknown: role ${serverRole} cannot read it (GRANT pg_read_all_stats)`;
const ON = "ok synchronous_commit is on: a change is acknowledged when the synchronous standbys have it on disk";

describe("replication", () => {
  test("commits wait for no standby", async () => {
    expect(await found("replication")).toEqual([
      `warning commits do not wait for a standby, but s1 may be promoted: ${LOSS}`,
    ]);
  });

  test("one synchronous standby, with and without the right to read its state", async () => {
    await during({ synchronous_standby_names: "FIRST 1 (s1)" });
    const number =
      "warning synchronous_standby_names is FIRST 1 (s1), and s1 of its standbys is connected: all changes and verifications block while it is down";
    expect(await found("replication")).toEqual([ON, number, UNKNOWN]);
    await seeStates();
    expect(await found("replication")).toEqual([ON, number]);
  });

  test("a failed synchronous standby blocks commits, which the doctor predicts", async () => {
    await during({ synchronous_standby_names: "s1, s2" });
    await seeStates();
    await standby.stop();
    onTestFinished(() => standby.start());
    await expect.poll(() => primary.admin`SELECT FROM pg_stat_replication`, { timeout: 10_000 }).toHaveLength(0);
    const began = performance.now();
    expect(await found("replication")).toEqual([
      ON,
      "error synchronous_standby_names is s1, s2, and none of its standbys is connected: all changes and verifications block until 1 standby(s) are connected",
    ]);
    expect(performance.now() - began).toBeLessThan(20_000);
  });

  const COMMITS = table([
    ["local", `error synchronous_commit is local: commits do not wait for synchronous standbys, so ${LOSS}`],
    ["off", `error synchronous_commit is off: commits do not wait for synchronous standbys, so ${LOSS}`],
    ["remote_write", /^warning synchronous_commit is remote_write: if a standby.s OS crashes before promotion/],
    ["remote_apply", /^ok synchronous_commit is remote_apply/],
  ] as const);
  test.each(COMMITS)("synchronous_commit = %s", async (value, expected) => {
    await during({ synchronous_standby_names: "ANY 1 (s1, s2)", synchronous_commit: value });
    const [first] = await found("replication");
    expect(first).toEqual(typeof expected === "string" ? expected : expect.stringMatching(expected));
  });

  const streaming = (...names: string[]) => names.map((name) => ({ name, state: "streaming" }));
  const evaluate = (names: string, standbys: { name: string; state: string | null }[]) =>
    evaluateReplication({
      ...{ role: "r", synchronousCommit: "on", synchronousStandbyNames: names, standbys },
      synchronous: parseStandbyNames(names),
    }).map(({ level, message }) => `${level} ${message}`);

  test("more standbys than commits wait for, and asynchronous ones", () => {
    expect(evaluate("ANY 1 (s1, s2)", streaming("S1", "s2", "s3"))).toEqual([
      ON,
      "ok synchronous_standby_names is ANY 1 (s1, s2), and S1, s2 of its standbys are connected: commits wait for 1; promote the standby that has received the most WAL",
      `ok s3: asynchronous, do not promote (${LOSS})`,
    ]);
    expect(evaluate("FIRST 1 (s1, s2)", streaming("s1", "s2"))[1]).toMatch(
      /: commits wait for 1; promote the first standby in the list$/,
    );
    expect(evaluate("*", streaming("a"))[1]).toMatch(
      /^warning synchronous_standby_names is \*, and a of its standbys is/,
    );
    expect(evaluate("2 (s1, s2)", [...streaming("s1"), { name: "s2", state: "catchup" }])[1]).toMatch(
      /^error .* until 2 standby\(s\) are connected$/,
    );
  });

  const NAMES = table([
    ["", null],
    ["s1", { method: "FIRST", count: 1, names: ["s1"] }],
    ["s1, S2", { method: "FIRST", count: 1, names: ["s1", "s2"] }],
    ["2 (s1, s2,s3)", { method: "FIRST", count: 2, names: ["s1", "s2", "s3"] }],
    ["first 1 (s1)", { method: "FIRST", count: 1, names: ["s1"] }],
    ['ANY 2(s1, "s 2", "a""b", *)', { method: "ANY", count: 2, names: ["s1", "s 2", 'a"b', "*"] }],
  ] as const);
  test.each(NAMES)("synchronous_standby_names = %j", (text, expected) => {
    expect(parseStandbyNames(text)).toEqual(expected);
  });
});

describe("database_hosts", () => {
  test("each host is reported as the primary, a standby or unreachable", async () => {
    const port = await freePort();
    const url = primary.url(`${standby.address},${primary.address},127.0.0.1:${port}`);
    const more = { KEYHOLD_DATABASE_URL: url, KEYHOLD_DATABASE_LISTEN_URL: primary.url() };
    expect(await found("database_hosts", more)).toEqual([
      `ok KEYHOLD_DATABASE_URL: ${standby.address} is a standby, not used until it is promoted`,
      `ok KEYHOLD_DATABASE_URL: ${primary.address} is the primary`,
      `warning KEYHOLD_DATABASE_URL: 127.0.0.1:${port} refused the connection: it is not available for a failover`,
      `ok KEYHOLD_DATABASE_LISTEN_URL: ${primary.address} is the primary`,
    ]);
  });

  test("a missing primary is an error", async () => {
    const more = { KEYHOLD_DATABASE_URL: standby.url() };
    expect(await found("database_hosts", more)).toContain("error KEYHOLD_DATABASE_URL does not list a primary");
    expect(await found("database", more)).toEqual([
      expect.stringContaining(`no primary among ${standby.address}: ${standby.address} is a standby (in recovery)`),
    ]);
  });

  test("a host listed twice is one primary; two writable servers are split brain", () => {
    const report = (address: string, server: string) => ({ address, server, kind: "primary" as const, failure: "" });
    const levels = (servers: readonly string[]) =>
      evaluateHosts(
        "URL",
        servers.map((server, place) => report(`h${place}:5432`, server)),
      ).map(({ level }) => level);
    expect(levels(["1/00000001/5", "1/00000001/5"])).toEqual(["ok", "ok"]);
    expect(levels(["1/00000001/5", "1/00000002/6"])).toEqual(["ok", "ok", "error"]);
  });
});

test("data and notifications from one server, or from old and new primary", async () => {
  expect(await found("servers")).toEqual([expect.stringMatching(/^ok data and notifications come from one server \(/)]);
  const other = await primary.addStandby("s2");
  onTestFinished(() => other.close());
  await other.promote();
  const apart = { KEYHOLD_DATABASE_LISTEN_URL: other.url() };
  expect(await found("servers", apart)).toEqual([
    expect.stringMatching(
      /^error data and notifications come from two servers \(.* timeline 1, .*; .* timeline 2, .*\)/,
    ),
  ]);
  const both = { KEYHOLD_DATABASE_URL: primary.url(`${primary.address},${other.address}`) };
  expect((await found("database_hosts", both)).at(-1)).toMatch(
    /^error KEYHOLD_DATABASE_URL lists 2 servers that accept writes/,
  );
});
