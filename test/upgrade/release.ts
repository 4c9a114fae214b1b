import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { runKeyhold } from "../support/keyhold.ts";

const exec = promisify(execFile);

/** Release 0.1. */
export const COMMIT = "8d6e269f97240ad7254f65bf6bbed067f12c84e3";

/** This checkout. */
export const CHECKOUT = resolve(import.meta.dirname, "../..");

/** The launcher of a checkout. */
export const COMMAND = "src/cli/keyhold.js";

/** Installs release 0.1 from the history of this repository in a new folder below this one. Returns its path. */
export async function installRelease(dir: string): Promise<string> {
  const [archive, checkout] = [join(dir, "release.tar"), join(dir, "release")];
  await exec("git", ["cat-file", "-e", `${COMMIT}^{commit}`], { cwd: CHECKOUT }).catch(() => {
    throw new Error(`this clone lacks commit ${COMMIT} (release 0.1); run: git fetch --unshallow`);
  });
  await mkdir(checkout);
  await exec("git", ["archive", "--output", archive, COMMIT], { cwd: CHECKOUT });
  await exec("tar", ["-xf", archive, "-C", checkout]);
  await exec("npm", ["ci", "--omit=dev", "--omit=optional", "--no-audit", "--no-fund"], { cwd: checkout });
  return checkout;
}

/** Runs `keyhold migrate` of a checkout as the owner of the database. */
export async function migrate(checkout: string, ownerUrl: string, serverRole: string): Promise<void> {
  const { code, stderr } = await runKeyhold(
    ["migrate", "--grant-to", serverRole],
    { KEYHOLD_DATABASE_URL: ownerUrl },
    { main: join(checkout, COMMAND) },
  );
  if (code !== 0) throw new Error(`keyhold migrate ended with exit code ${code}: ${stderr}`);
}
