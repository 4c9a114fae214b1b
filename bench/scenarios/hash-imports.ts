import { createHash, randomBytes, randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { type Fixture, once } from "../harness/fixture.ts";
import { run } from "../harness/program.ts";
import type { Measure, Scenario } from "../harness/scenario.ts";
import { CONNECTIONS, httpLoad, JSON_HEADERS } from "../load/http-load.ts";
import { jsonBodies } from "../load/requests.ts";
import { get, PATHS, post, times } from "../subject/client.ts";
import { KEY, verifyAll } from "../subject/fill.ts";
import { install, programOf } from "../subject/installation.ts";
import { warmService } from "./warm-service.ts";

const [ROWS, MANY_ROWS] = [50_000, 1_000_000];

/** Keys that the load cycles through, all cached. */
const KEYS = 1_000;

/** How the hashes were made, one scheme each: as many as can be in use at the same time. */
const SCHEMES = ["SHA256", "SHA384", "SHA512", "SHA512_256"].flatMap((algorithm) =>
  ["", "pepper:"].map((prefix) => ({ algorithm, prefix })),
);

const newRawKey = () => `acme_${randomBytes(24).toString("base64url")}`;
const hashOf = (rawKey: string) => createHash("sha256").update(rawKey).digest("hex");
const hashInput = (rawKey: string) => ({
  algorithm: "HASH_ALGORITHM_SHA256",
  encoding: "TEXT_ENCODING_HEX",
  value: hashOf(rawKey),
});

interface FileKind {
  readonly column: string;
  readonly cell: (rawKey: string) => string;
  readonly options: readonly string[];
}

const RAW_KEYS: FileKind = { column: "raw_key", cell: (rawKey) => rawKey, options: [] };
const HASHES: FileKind = {
  column: "hash",
  cell: hashOf,
  options: ["--hash-algorithm", "sha256", "--hash-encoding", "hex"],
};

/** Returns the rows per second of `keys import`, with the start of the command. */
function importRate(fixture: Fixture, url: string, rows: number, { column, cell, options }: FileKind): Measure {
  return async () => {
    const file = join(fixture.dir, `${randomUUID()}.csv`);
    const { name, actor_id, scopes } = KEY;
    function* lines() {
      yield `${column},name,actor_id,scopes\n`;
      for (let row = 0; row < rows; row++) yield `${cell(newRawKey())},${name},${actor_id},${scopes.join(" ")}\n`;
    }
    await pipeline(Readable.from(lines()), createWriteStream(file));
    const command = [process.execPath, programOf(fixture), "keys", "import", file, "--json", ...options];
    const started = performance.now();
    const report = JSON.parse(await run(fixture.pinning.on("load", command), { KEYHOLD_URL: url }));
    const seconds = (performance.now() - started) / 1000;
    if (report.imported !== rows) throw new Error(`not all rows were imported: ${JSON.stringify(report)}`);
    return rows / seconds;
  };
}

function importScenario(name: string, rows: number, limits: Pick<Scenario, "long" | "rounds">): Scenario {
  return {
    ...limits,
    name,
    group: "hash-import",
    work: `keys import of ${rows.toLocaleString("en-GB")} SHA-256 hashes from CSV`,
    against: "the same of raw keys, into the same table",
    unit: "keys/s",
    judged: "ratio",
    prepare: async (fixture) => {
      const { url } = await warmService(fixture);
      return {
        subject: importRate(fixture, url, rows, HASHES),
        baseline: importRate(fixture, url, rows, RAW_KEYS),
      };
    },
  };
}

/** Keys that were imported by their hashes and adopted, and keys that were imported by their raw keys. All are cached. */
const adopted = once(async (fixture: Fixture) => {
  const { url } = await warmService(fixture);
  const [byHash, byRawKey] = [Array.from({ length: KEYS }, newRawKey), Array.from({ length: KEYS }, newRawKey)];
  await importAll(
    url,
    byHash.map((rawKey) => ({ raw_key_hash: hashInput(rawKey) })),
  );
  await importAll(
    url,
    byRawKey.map((raw_key) => ({ raw_key })),
  );
  for (const keys of [byHash, byRawKey]) await verifyAll(url, keys);
  await allAdopted(url, byHash);
  for (const keys of [byHash, byRawKey]) await verifyAll(url, keys);
  return { url, byHash, byRawKey };
});

async function importAll(url: string, keys: readonly object[]): Promise<void> {
  const { success_count } = await post(url + PATHS.batchImport, { requests: keys.map((key) => ({ ...KEY, ...key })) });
  if (success_count !== keys.length) throw new Error(`${success_count} of ${keys.length} keys were imported`);
}

/** Keys are adopted in the background; a verification that finds too many waiting leaves it to the next one. */
async function allAdopted(url: string, rawKeys: readonly string[]): Promise<void> {
  const filter = encodeURIComponent("adopted = false");
  for (;;) {
    const { imported_api_keys: left } = await get(`${url}${PATHS.imported}?page_size=1&filter=${filter}`);
    if (left.length === 0) return;
    await verifyAll(url, rawKeys, { "cache-control": "no-cache" });
    await sleep(100);
  }
}

/** Measures the milliseconds of one verification of an unknown raw key that bypasses the cache. */
async function missTime(fixture: Fixture, schemes: typeof SCHEMES): Promise<Measure> {
  const { url } = (await install(fixture)).server;
  await times(schemes.length, async (index) => {
    const { algorithm = "", prefix = "" } = schemes[index] ?? {};
    const hash = createHash(algorithm.toLowerCase().replace("_", "-"));
    const value = hash.update(prefix + newRawKey()).digest("hex");
    const encoding = "TEXT_ENCODING_HEX";
    const raw_key_hash = { algorithm: `HASH_ALGORITHM_${algorithm}`, encoding, value, prefix };
    await post(url + PATHS.imported, { ...KEY, raw_key_hash });
  });
  const rate = httpLoad(fixture, {
    url: url + PATHS.verify,
    headers: { ...JSON_HEADERS, "cache-control": "no-store" },
    bodies: await jsonBodies(
      fixture,
      Array.from({ length: KEYS }, () => ({ credential: newRawKey() })),
    ),
    connections: 1,
  });
  return async () => 1000 / (await rate());
}

/** Keys that were imported by their hashes. */
export const hashImportScenarios: readonly Scenario[] = [
  importScenario("import-hashes", ROWS, { rounds: 5 }),
  importScenario("import-hashes-million", MANY_ROWS, { rounds: 1, long: 600 }),
  {
    name: "verify-adopted",
    group: "hash-import",
    work: "verify, cached, of keys that were imported by their hashes and adopted, REST HTTP/1.1",
    against: "the same of keys that were imported by their raw keys",
    unit: "requests/s",
    judged: "ratio",
    prepare: async (fixture) => {
      const { url, byHash, byRawKey } = await adopted(fixture);
      const load = { url: url + PATHS.verify, headers: JSON_HEADERS, connections: CONNECTIONS };
      const bodies = (keys: readonly string[]) =>
        jsonBodies(
          fixture,
          keys.map((credential) => ({ credential })),
        );
      return {
        subject: httpLoad(fixture, { ...load, bodies: await bodies(byHash) }),
        baseline: httpLoad(fixture, { ...load, bodies: await bodies(byRawKey) }),
      };
    },
  },
  {
    name: "verify-unknown-schemes",
    group: "hash-miss",
    work: `verify of an unknown raw key, bypassing the cache, while ${SCHEMES.length} kinds of hashes are in use`,
    against: "the same while none is, one request after the other",
    unit: "ms",
    judged: "ratio",
    prepare: async (fixture) => ({ subject: await missTime(fixture, SCHEMES), baseline: await missTime(fixture, []) }),
  },
];
