import { expect, test } from "vitest";
import { succeeded } from "../support/conformance.ts";
import { useProtocols } from "../support/protocols/protocols.ts";
import { issue, type Json, paths } from "../support/rest.ts";

const suite = useProtocols();
const { rest } = suite;

/** So slow that nothing refills during a test. */
const PER_DAY = { name: "requests", quota: 3, window: "24h" };

async function limited(...rate_limits: readonly object[]) {
  return issue(rest, { name: "limited", actor_id: "actor_1", rate_limits });
}

async function verify(credential: string, charges?: readonly object[]): Promise<Json> {
  return succeeded(await rest("POST", `${paths.keys}:verify`, { credential, ...(charges && { charges }) }));
}

test("a key is accepted as often as its limit admits, and then denied", async () => {
  const { secret } = await limited(PER_DAY);
  const verdicts = [];
  for (let count = 0; count < 5; count++) verdicts.push(await verify(secret));
  expect(verdicts.map(({ is_valid }) => is_valid)).toEqual([true, true, true, false, false]);
});
