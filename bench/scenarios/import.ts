import { randomBytes } from "node:crypto";
import { COPY_PROGRAM, copy, copyRows } from "../baseline/copy.ts";
import type { Scenario } from "../harness/scenario.ts";
import { PATHS } from "../subject/client.ts";
import { KEY } from "../subject/fill.ts";
import { warmService } from "./warm-service.ts";

const BATCH = 1000;

/** Batches in a round, sent sequentially by one client. */
const BATCHES = 10;

const newImport = () => ({ ...KEY, raw_key: `sk_live_${randomBytes(24).toString("base64url")}` });

export const importScenarios: readonly Scenario[] = [
  {
    name: "batch-import",
    group: "database",
    work: "batch import of 1000",
    against: `COPY of the same rows into the same table by ${COPY_PROGRAM}, one client each`,
    unit: "keys/s",
    judged: "ratio",
    prepare: async (fixture) => {
      const { url, installation } = await warmService(fixture);
      const rows = () => Array.from({ length: BATCHES }, () => copyRows(BATCH, newImport));
      return {
        subject: () => importRate(url),
        baseline: async () => rateOf(sum(await copy(fixture, installation.databaseUrl, rows()))),
      };
    },
  },
];

/** Imports new keys and returns keys per second. */
export async function importRate(url: string): Promise<number> {
  return rateOf(await importBatches(url + PATHS.batchImport));
}

/** Returns the milliseconds from the first byte sent to the last one received. Bodies are created before. */
async function importBatches(url: string): Promise<number> {
  const bodies = Array.from({ length: BATCHES }, () =>
    JSON.stringify({ requests: Array.from({ length: BATCH }, newImport) }),
  );
  let milliseconds = 0;
  for (const body of bodies) {
    const start = performance.now();
    const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body });
    const text = await response.text();
    milliseconds += performance.now() - start;
    if (response.status !== 200 || JSON.parse(text).success_count !== BATCH) throw new Error(text.slice(0, 1000));
  }
  return milliseconds;
}

function rateOf(milliseconds: number): number {
  return (BATCH * BATCHES) / (milliseconds / 1000);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
