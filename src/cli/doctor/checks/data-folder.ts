import { stat, statfs } from "node:fs/promises";
import { type Check, error, type Finding, ok, warning } from "../finding.ts";

const GIB = 1024 ** 3;

/** Of the embedded database. */
export const checkDataFolder: Check = async ({ config: { databaseUrl, dataDir } }) => {
  if (databaseUrl !== null) return [];
  const found = await stat(dataDir).catch(() => null);
  if (found === null) return [ok(`${dataDir} is made at first start`)];
  return [judgeMode(dataDir, found.mode), judgeSpace(await statfs(dataDir))];
};

/** Others may have to pass through it to PostgreSQL's own folder, which is private. */
function judgeMode(dataDir: string, mode: number): Finding {
  if ((mode & 0o066) === 0) return ok(`${dataDir} is private`);
  return warning(`others may read or write in ${dataDir}`, `chmod go-rw ${dataDir}`);
}

/** When it is full PostgreSQL stops. */
export function judgeSpace({ bavail, bsize }: { readonly bavail: number; readonly bsize: number }): Finding {
  const free = (bavail * bsize) / GIB;
  const message = `${free.toFixed(1)} GiB are free in the data folder`;
  if (free >= 1) return ok(message);
  return free < 0.1 ? error(message, "make room now") : warning(message, "make room");
}
