import { beforeAll, expect, test } from "vitest";
import { issue, paths, verify } from "../../support/rest.ts";
import { newRows, writeRows } from "../import/import-command.ts";
import { useKeysCommand } from "./keys-command.ts";

/** The minimum rate of changes, and a rate at which an import of more keys than the burst of 2000 ends soon. */
const { suite, keys, rest, follow } = useKeysCommand({ KEYHOLD_CHANGE_RATE: "1", KEYHOLD_IMPORT_RATE: "200" });

const RETRYING = /^too many changes by this caller; retry after \d+ s; retrying$/m;

let disabled: Awaited<ReturnType<typeof issue>>;
let rotated: typeof disabled;

beforeAll(async () => {
  disabled = await issue(rest(), { actor_id: "bulk" });
  rotated = await issue(rest());
  await rest()("POST", `${paths.issued}/${rotated.keyId}:rotate`, { grace_period: "3h" });
  await suite.sql`UPDATE api_keys SET rotate_time = rotate_time - interval '2 hours' WHERE key_id = ${rotated.keyId}`;
});

/** Runs a command while other changes of its caller take every token, until it says that it retries. Repeats it if it has found a token. */
async function retried(args: readonly string[]): Promise<unknown> {
  const command = follow(args);
  let isOver = false;
  const ended = command.ended.finally(() => {
    isOver = true;
  });
  const change = () => rest()("POST", `${paths.keys}/${rotated.keyId}:enable`, {});
  while (!isOver && !RETRYING.test(command.printed.stderr)) await Promise.all(Array.from({ length: 10 }, change));
  expect([await ended, command.printed.stderr]).toEqual([0, expect.any(String)]);
  return RETRYING.test(command.printed.stderr) ? command.printed : retried(args);
}

test("an import over the limit waits, says so once, and imports all keys", async () => {
  const file = await writeRows(newRows(2_500));
  const { code, stdout, stderr } = await keys(["import", file]);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^imported +2500$/m)]);
  expect(stderr.match(/too many imported keys by this caller; retry after \d+ s; retrying/g)).toHaveLength(1);
});

test("bulk-disable over the limit waits, says so, and disables the keys", async () => {
  await retried(["bulk-disable", "--filter", 'actor_id="bulk"', "--yes"]);
  expect(await verify(rest(), disabled.secret)).toMatchObject({ error_code: "VERIFICATION_ERROR_DISABLED" });
});

test("end-grace over the limit ends the grace period after its wait", async () => {
  await retried(["end-grace", rotated.keyId, "--wait-idle", "1h"]);
  expect(await verify(rest(), rotated.secret)).toMatchObject({ error_code: "VERIFICATION_ERROR_REVOKED" });
});
