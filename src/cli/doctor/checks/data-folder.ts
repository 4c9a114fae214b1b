import { stat, statfs } from "node:fs/promises";
import { type Check, error, type Finding, ok, warning } from "../finding.ts";

const GIB = 1024 ** 3;

/** Checks the data folder of the embedded database. */
export const checkDataFolder: Check = async ({ config: { databaseUrl, dataDir } }) => {
  if (databaseUrl !== null) return [];
  const found = await stat(dataDir).catch(() => null);
  if (found === null) return [ok(`${dataDir} will be created at first start`)];
  return [evaluateMode(dataDir, found.mode), evaluateSpace(await statfs(dataDir))];
};

/** Others may need to traverse it to reach PostgreSQL's own folder, which is private. */
function evaluateMode(dataDir: string, mode: number): Finding {
  if ((mode & 0o066) === 0) return ok(`${dataDir} is private`);
  return warning(`other users can read or write ${dataDir}`, `chmod go-rw ${dataDir}`);
}

/** PostgreSQL stops when the disk is full. */
export function evaluateSpace({ bavail, bsize }: { readonly bavail: number; readonly bsize: number }): Finding {
  const free = (bavail * bsize) / GIB;
  const message = `${free.toFixed(1)} GiB free in the data folder`;
  if (free >= 1) return ok(message);
  return free < 0.1 ? error(message, "free disk space now") : warning(message, "free disk space");
}
