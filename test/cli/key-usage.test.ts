import { beforeAll, expect, test } from "vitest";
import { issue, verify } from "../support/rest.ts";
import { useKeysCommand } from "./keys/keys-command.ts";

const { suite, keyhold, rest } = useKeysCommand();

const usage = async (...args: string[]) => {
  const { code, stdout, stderr } = await keyhold(["usage", ...args]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  return stdout;
};

const ACTOR = '=team "1", a';

let keyId: string;
let other: string;
beforeAll(async () => {
  const rate_limits = [{ name: "requests", quota: 600, window: "1m" }];
  const one = await issue(rest(), { actor_id: ACTOR, rate_limits });
  const two = await issue(rest(), { actor_id: ACTOR });
  [keyId, other] = [one.keyId, two.keyId];
  for (let times = 0; times < 8; times++) await verify(rest(), one.secret);
  await verify(rest(), two.secret);
  await suite.server.restart({ KEYHOLD_AUTH: "admin-token" });
});

test("the table has a bar for each count, the highest first", async () => {
  const [titles, first, second] = (await usage("--actor", ACTOR)).split("\n");
  expect(titles).toMatch(/^KEY +ACTOR +COUNT$/);
  expect(first).toMatch(new RegExp(`^${keyId}  .*team.*  8 +█{30}$`));
  expect(second).toMatch(new RegExp(`^${other}  .*team.*  1 +█{3}▊$`));
});

test("a key has its counts by outcome and step", async () => {
  const [titles, row] = (await usage(keyId.toUpperCase(), "--step", "1h")).split("\n");
  expect(titles).toMatch(/^TIME +OUTCOME +COUNT$/);
  expect(row).toMatch(/^\d{4}-\d\d-\d\dT\d\d:00:00Z +VALID +8 +█{30}$/);
});

test("--json prints the counts as the REST API does", async () => {
  expect(JSON.parse(await usage("--actor", ACTOR, "--json", "--limit", "1"))).toEqual([
    { key_id: keyId, actor_id: ACTOR, outcome: "", count: "8", limit: "", units: "0" },
  ]);
});

test("--csv quotes what a spreadsheet would read otherwise", async () => {
  expect(await usage("--actor", ACTOR, "--by", "actor", "outcome", "--csv")).toBe(
    `actor_id,outcome,count\n"'=team ""1"", a",VALID,9\n`,
  );
});

test("--units and --by limit print units", async () => {
  const [titles, row] = (await usage(keyId, "--units", "requests")).split("\n");
  expect(titles).toMatch(/^LIMIT +UNITS$/);
  expect(row).toMatch(/^requests +8 +█{30}$/);
  expect(await usage("--by", "limit", "--csv", "--step", "1d")).toMatch(
    /^start_time,limit,units\n\d{4}-\d\d-\d\dT00:00:00Z,requests,8\n$/,
  );
  expect(JSON.parse(await usage("--units", "requests", "--json"))).toMatchObject([{ key_id: keyId, units: "8" }]);
  expect(await usage("--units", "requests", "--by", "actor", "--csv")).toMatch(/^actor_id,units\n.*,8\n$/);
});

test("a key without usage, and a wrong option, say so", async () => {
  const none = await keyhold(["usage", "--actor", "nobody"]);
  expect([none.code, none.stdout, none.stderr.trim()]).toEqual([0, "", "no usage"]);
  const wrong = await keyhold(["usage", "--since", "yesterday"]);
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("--since: must be a duration")]);
  const outcome = await keyhold(["usage", "--outcome", "REVOKED"]);
  expect([outcome.code, outcome.stderr]).toEqual([2, expect.stringContaining("outcome: must be one of VALID, ")]);
});
