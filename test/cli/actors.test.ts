import { expect, test } from "vitest";
import { table } from "../support/conformance.ts";
import { type Json, paths } from "../support/rest.ts";
import { useKeysCommand } from "./keys/keys-command.ts";

/** `keyhold actors` against a real server. The tests run in order. */

const { keyhold, rest } = useKeysCommand();

const actors = (...args: string[]) => keyhold(["actors", ...args]);

async function answerOf(...args: string[]): Promise<Json> {
  const { code, stdout, stderr } = await actors(...args, "--json");
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return JSON.parse(stdout);
}

test("update sets limits of an actor, and get shows them as REST does", async () => {
  expect(await actors("list")).toMatchObject({ code: 0, stdout: "", stderr: "no actors have limits\n" });
  const limits = ["--rate-limit", "requests=600/1m,burst=1200", "exports=10/1h,on-demand"];
  const updated = await answerOf("update", "team 42/ä", ...limits);
  expect(updated).toMatchObject({
    actor_id: "team 42/ä",
    rate_limits: [
      { name: "requests", quota: 600, window: "60s", burst: 1200 },
      { name: "exports", on_demand: true },
    ],
  });
  expect(await answerOf("get", "team 42/ä")).toEqual(updated);
  expect((await rest()("GET", `${paths.actors}/${encodeURIComponent("team 42/ä")}`)).body).toEqual(updated);
  expect((await actors("get", "team 42/ä", "--output", "id")).stdout).toBe("team 42/ä\n");
});

test("list shows the actors of all pages", async () => {
  for (const id of ["b", "c"])
    await answerOf("update", id, "--rate-limit", "requests=5/1s", "--quota", "monthly=9/month");
  const adjusted = await answerOf("adjust-quota", "b", "monthly", "--add", "7");
  expect(adjusted).toMatchObject({ actor_id: "b", quotas: [{ name: "monthly", limit: 9 }] });
  const { stdout } = await actors("list", "--page-size", "1");
  const rows = stdout.trimEnd().split("\n");
  expect(rows[0]).toMatch(/^ACTOR ID +RATE LIMITS +QUOTAS +CREATED +UPDATED$/);
  expect(rows.slice(1).map((row) => row.split(/ {2,}/).slice(0, 3))).toEqual([
    ["b", "requests=5/1s", "monthly=9/month"],
    ["c", "requests=5/1s", "monthly=9/month"],
    ["team 42/ä", "requests=600/60s exports=10/3600s", "-"],
  ]);
  const filtered = await answerOf("list", "--filter", "quotas:monthly AND actor_id>b");
  expect(filtered.map(({ actor_id }: Json) => actor_id)).toEqual(["c"]);
  expect((await actors("list", "--filter", "quotas:weekly")).stderr).toBe("no actors match\n");
  expect((await answerOf("list", "--limit", "2")).map(({ actor_id }: Json) => actor_id)).toEqual(["b", "c"]);
});

test("limits can be removed, and the actor deleted", async () => {
  expect(await answerOf("update", "b", "--clear-rate-limits")).toMatchObject({ actor_id: "b", rate_limits: [] });
  expect((await actors("delete", "b")).stdout).toMatch(/^actor_id +b\nstatus +deleted$/m);
  expect(await answerOf("delete", "c")).toEqual({});
});

const FAILURES: readonly (readonly [string, number, string, readonly string[]])[] = [
  ["an actor without limits", 3, "no limits were set for this actor", ["get", "nobody"]],
  ["a second deletion", 3, "no limits were set for this actor", ["delete", "c"]],
  ["an unknown quota", 3, "the actor has no quota of this name", ["adjust-quota", "c", "daily", "--add", "1"]],
  ["an adjustment by nothing", 2, "is required unless", ["adjust-quota", "b", "monthly"]],
  ["a bad filter", 2, "unknown field at position 1", ["list", "--filter", "name=b"]],
  ["an update without a field", 2, "nothing to update", ["update", "b"]],
  ["two limits of one name", 2, "is used twice", ["update", "b", "--rate-limit", "a=1/1s", "a=2/1s"]],
  ["a limit of another form", 2, "must have the form name=quota/window", ["update", "b", "--rate-limit", "a=1"]],
];

test.each(table(FAILURES))("%s has exit status %i", async (_, code, message, args) => {
  expect(await actors(...args)).toMatchObject({ code, stdout: "", stderr: expect.stringContaining(message) });
});
