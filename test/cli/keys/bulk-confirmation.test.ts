import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { importKey, useService } from "../../support/conformance.ts";
import { type Ended, eventually, type RunOptions, runKeyhold } from "../../support/keyhold.ts";
import { linesOf } from "../../support/log-lines.ts";
import { importMany, verdictsOf } from "../../support/many-keys.ts";
import { restClient } from "../../support/rest.ts";

const KEYS = 3;

const suite = useService();
const rest = () => restClient(suite.server);

/** Node has no pseudo-terminals, so the command is made to take its stdin, a pipe, for a terminal. */
const TERMINAL = { NODE_OPTIONS: "--import=data:text/javascript,process.stdin.isTTY=true" };

async function newKeys() {
  const actor = randomUUID();
  return { actor, filter: `actor_id="${actor}"`, rawKeys: await importMany(rest(), KEYS, { actor_id: actor }) };
}

function run(args: readonly string[], input: RunOptions["input"], environment: Record<string, string> = TERMINAL) {
  return runKeyhold(["keys", ...args], { KEYHOLD_URL: suite.server.url, ...environment }, { input });
}

const bulkRevoke = (filter: string, input: RunOptions["input"], environment?: Record<string, string>): Promise<Ended> =>
  run(["bulk-revoke", "--filter", filter], input, environment);

test.each(["y\n", "yes\n", "YES\r\n"])("the answer %j changes the keys", async (input) => {
  const { filter, rawKeys } = await newKeys();
  const { code, stdout, stderr } = await bulkRevoke(filter, input);
  expect({ code, stderr }).toEqual({
    code: 0,
    stderr: expect.stringMatching(/^Revoke 3 keys permanently\? \[y\/N\] /),
  });
  expect(stdout).toMatch(/^changed_count +3$/m);
  expect(await verdictsOf(rest(), rawKeys)).toEqual({ VERIFICATION_ERROR_REVOKED: KEYS });
});

test.each(["n\n", "\n", "yep\n", "revoke\n", "n\ny\n", "y", ""])("the answer %j changes nothing", async (input) => {
  const { filter, rawKeys } = await newKeys();
  const { code, stdout, stderr } = await bulkRevoke(filter, input);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/^Revoke 3 keys permanently\? \[y\/N\] \n?nothing was changed\n$/);
  expect(await verdictsOf(rest(), rawKeys)).toEqual({ valid: KEYS });
});

test("bulk-disable asks too", async () => {
  const { filter, rawKeys } = await newKeys();
  const { code, stderr } = await run(["bulk-disable", "--filter", filter], "y\n");
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(/^Disable 3 keys\? \[y\/N\] /) });
  expect(await verdictsOf(rest(), rawKeys)).toEqual({ VERIFICATION_ERROR_DISABLED: KEYS });
});

test("without a terminal, --yes is required, and no call is made", async () => {
  const { filter, rawKeys } = await newKeys();
  const calls = bulkCalls();
  const { code, stderr } = await bulkRevoke(filter, "y\n", {});
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining("--yes") });
  expect(bulkCalls()).toBe(calls);
  expect(await verdictsOf(rest(), rawKeys)).toEqual({ valid: KEYS });
});

test("nothing changes if another number of keys matches when the answer is given", async () => {
  const { actor, filter, rawKeys } = await newKeys();
  const calls = bulkCalls();
  const answer = Promise.withResolvers<string>();
  const ended = bulkRevoke(filter, answer.promise);
  await eventually(async () => bulkCalls() > calls);
  const { rawKey } = await importKey(rest(), { actor_id: actor });
  answer.resolve("y\n");
  const { code, stderr } = await ended;
  expect({ code, stderr }).toEqual({ code: 5, stderr: expect.stringContaining("matching keys: 4, expected: 3") });
  expect(await verdictsOf(rest(), [...rawKeys, rawKey])).toEqual({ valid: KEYS + 1 });
});

/** Returns the number of calls of bulk operations. */
function bulkCalls(): number {
  return linesOf(suite.server.log()).filter(({ msg, rpc }) => msg !== "keys changed" && /Bulk\w+Keys/.test(rpc)).length;
}
