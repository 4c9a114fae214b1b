import { execFile } from "node:child_process";
import { chmod, chown, stat } from "node:fs/promises";
import { promisify } from "node:util";
import { KeyholdError } from "../../errors.ts";
import type { Binaries } from "./binaries.ts";
import { childEnvironment } from "./process.ts";

/** PostgreSQL refuses to run as root, so root needs another account for it. */
export interface Account {
  /** The command that the real one follows; empty to run it as it is. */
  readonly prefix: readonly string[];
  /** The user and group to give to the process and to what it must own; empty to keep ours. */
  readonly ids: { readonly uid?: number; readonly gid?: number };
}

const nobody = 65534;

export const ownAccount: Account = { prefix: [], ids: {} };

/** We seem to be `nobody` inside and stay root outside: no path is out of reach and no file changes its owner. */
const namespace: Account = {
  prefix: ["unshare", "--user", `--map-user=${nobody}`, `--map-group=${nobody}`, "--"],
  ids: {},
};

export interface AccountRequest {
  /** Our effective user id. */
  readonly uid: number;
  readonly dataDir: string;
  readonly clusterDir: string;
  readonly binaries: Binaries;
}

/**
 * Chooses the account for PostgreSQL's processes. For root: the owner of the cluster where that is another user, else a
 * user namespace, else (for a new cluster, where namespaces are barred, as in most containers) the user `nobody`.
 *
 * @throws KeyholdError `DATABASE_UNAVAILABLE` that says what to do when root has none of them.
 */
export async function chooseAccount(request: AccountRequest): Promise<Account> {
  if (request.uid !== 0) return ownAccount;
  const owner = await stat(request.clusterDir).catch(() => undefined);
  if (owner !== undefined && owner.uid !== 0) return drop(request, owner.uid, owner.gid);
  const barred = await refusal(namespace, [request.binaries.postgres, "--version"]);
  if (barred === undefined) return namespace;
  if (owner === undefined) return drop(request, nobody, nobody);
  throw noAccount(`no user namespace is to be had (${barred})`, `chown -R ${nobody}:${nobody} '${request.clusterDir}'`);
}

async function drop({ dataDir, binaries }: AccountRequest, uid: number, gid: number): Promise<Account> {
  const account: Account = { prefix: [], ids: { uid, gid } };
  await chmod(dataDir, (await stat(dataDir)).mode | 0o011);
  const barred =
    (await refusal(account, ["test", "-x", dataDir]).then((no) => no && `it cannot enter ${dataDir}`)) ??
    (await refusal(account, [binaries.postgres, "--version"]));
  if (barred === undefined) return account;
  throw noAccount(`user ${uid} cannot stand in (${barred})`, "move the data folder and Keyhold out of private folders");
}

/** Makes the account the owner of `path`. */
export async function give(path: string, { ids }: Account): Promise<void> {
  if (ids.uid !== undefined && ids.gid !== undefined) await chown(path, ids.uid, ids.gid);
}

function noAccount(why: string, remedy: string): KeyholdError {
  return new KeyholdError(
    "DATABASE_UNAVAILABLE",
    `PostgreSQL does not run as root, and ${why}: start Keyhold as another user, set KEYHOLD_DATABASE_URL, or ${remedy}`,
  );
}

/** Why the command does not run under the account, or undefined if it does. The kernel's own answer beats a guess. */
async function refusal(account: Account, command: readonly string[]): Promise<string | undefined> {
  const [file = "", ...args] = [...account.prefix, ...command];
  const options = { ...account.ids, env: childEnvironment, cwd: "/" };
  return promisify(execFile)(file, args, options).then(
    () => undefined,
    (error: Error & { stderr?: string }) => error.stderr?.trim() || error.message,
  );
}
