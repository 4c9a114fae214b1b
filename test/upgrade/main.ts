import { chmod, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { seededBy } from "../support/seeded.ts";
import { disableBesideOldServers } from "./controls.ts";
import { driveOldClient } from "./old-client.ts";
import { installRelease } from "./release.ts";
import { changeAlgorithm } from "./signing-algorithm.ts";
import { expose, runUpgrade } from "./upgrade.ts";

/**
 * `npm run test:upgrade`: installs release 0.1 from the history of this repository, drives the current server with its TypeScript client,
 * and upgrades three nodes of it one after another on one database, under load and faults. Then the wait for other nodes is removed from
 * each release in turn, which the checker must detect.
 * Last, the signing algorithm is changed to one that release 0.1 does not know, and back, and a key is disabled beside servers of 0.1.
 *
 * KEYHOLD_FAULTS_SEED     seed of all random choices; printed
 * KEYHOLD_UPGRADE_FROM    an installed checkout of release 0.1, instead of installing one
 */

/** The minimum number of responses of a meaningful run. */
const MINIMUM = { verifies: 20_000, mutations: 400 };

/** Maximum number of printed lines per list. */
const MAX_LINES = 20;

const { seed } = seededBy("KEYHOLD_FAULTS_SEED");
const dir = await mkdtemp(join(tmpdir(), "keyhold-upgrade-"));
await chmod(dir, 0o711);
const oldCheckout = process.env.KEYHOLD_UPGRADE_FROM ?? (await installRelease(dir));
const failures: string[] = [];

failures.push(...(await driveOldClient(await newDir("old-client"), oldCheckout)));
const { table, totals, violations, ...outcome } = await runUpgrade({ seed, dir: await newDir("run"), oldCheckout });
console.info(table);
failures.push(...violations.map(({ text }) => `violation: ${text}`), ...outcome.failures);
if (totals.verifies < MINIMUM.verifies || totals.mutations < MINIMUM.mutations)
  failures.push(`too few responses: ${totals.verifies} verifications, ${totals.mutations} changes`);

for (const release of ["0.1", "current"] as const) {
  const found = await expose({ seed, dir: await newDir(`exposed-${release}`), oldCheckout }, release);
  if (found === null) failures.push(`without the wait of release ${release} the checker finds no violation`);
  else console.info(`without the wait of release ${release}: ${found.text}`);
}

failures.push(...(await changeAlgorithm(await newDir("signing-algorithm"), oldCheckout)));
failures.push(...(await disableBesideOldServers(await newDir("controls"), oldCheckout)));

console.info(
  `${totals.verifies} verifications, ${totals.mutations} changes, ${totals.records} records compared, ${failures.length} failures`,
);
for (const failure of failures.slice(0, MAX_LINES)) console.error(failure);
if (failures.length === 0) await rm(dir, { recursive: true, force: true, maxRetries: 10 });
else console.error(`the logs of the nodes are in ${dir}`);
// Node would wait forever for requests in flight on connections that were reset.
process.exit(failures.length === 0 ? 0 : 1);

/** Creates a folder that other users may traverse. */
async function newDir(name: string): Promise<string> {
  const made = join(dir, name);
  await mkdir(made, { mode: 0o711 });
  return made;
}
