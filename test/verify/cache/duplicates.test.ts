import { expect, test } from "vitest";
import type { VerifiableRecord } from "../../../src/domain/key-lookup.ts";
import { reportingDuplicates } from "../../../src/verify/cache/duplicates.ts";

/** A record; one with a slow hash has an id that begins with "slow". */
const record = (keyId: string) => {
  const secrets = keyId.startsWith("slow") ? [{ hash: { parameters: "" } }] : [];
  return { key: { keyId }, secrets } as unknown as VerifiableRecord;
};

/** Returns what is reported when each group of keys is found in turn. */
async function reportedOf(groups: readonly (readonly string[])[]): Promise<(readonly string[])[]> {
  const reports: (readonly string[])[] = [];
  let found: VerifiableRecord[] = [];
  const findKeys = reportingDuplicates(
    async () => [found],
    (keyIds) => reports.push(keyIds),
  );
  for (const group of groups) {
    found = group.map(record);
    expect(await findKeys([])).toEqual([found]);
  }
  return reports;
}

test("keys with one raw key are reported once, in order", async () => {
  expect(await reportedOf([["b", "a"], ["a", "b"], ["c"], [], ["c", "slow"], ["a", "b", "c"]])).toEqual([
    ["a", "b"],
    ["a", "b", "c"],
  ]);
});

test("at most 1,000 are reported", async () => {
  const groups = Array.from({ length: 1_002 }, (_, number) => [`a${number}`, `b${number}`]);
  expect(await reportedOf(groups)).toEqual(groups.slice(0, 1_000));
});
