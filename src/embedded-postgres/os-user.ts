import { execFile } from "node:child_process";
import { chmod, readFile, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { KeyholdError } from "../domain/errors.ts";
import type { Binaries } from "./binaries.ts";
import { inMountNamespace, privateParents } from "./private-parents.ts";
import { childEnvironment } from "./process.ts";

export interface UserIds {
  readonly uid: number;
  readonly gid: number;
}

/** How to start a program so that it runs as a certain user. */
export interface RunAs {
  /** The command that the real one follows; empty to run it as it is. */
  readonly prefix: readonly string[];
  /** The user and group to give to the process; empty to keep ours. */
  readonly ids: Partial<UserIds>;
  /** The owner of the files that it works with; undefined to keep ours. */
  readonly owner: UserIds | undefined;
}

/** PostgreSQL refuses to run as root, and a superuser's `COPY … TO PROGRAM` must not either: root uses an unprivileged user for it. */
export interface OsUsers {
  readonly server: RunAs;
  /** For initdb and single-user mode, which require an entry in passwd(5). */
  readonly initializer: RunAs;
}

/** Not in passwd(5), not in a range of systemd or Debian: no other process runs as this user, so none may open the socket. */
const dedicated: UserIds = { uid: 65530, gid: 65530 };

const nobody: UserIds = { uid: 65534, gid: 65534 };

const unchanged: RunAs = { prefix: [], ids: {}, owner: undefined };

export const ownOsUser: OsUsers = { server: unchanged, initializer: unchanged };

/** Seems to be `nobody` inside and keeps our uid outside, so it is fit only where that is not the real root. */
const nested: RunAs = {
  prefix: ["unshare", "--user", `--map-user=${nobody.uid}`, `--map-group=${nobody.gid}`, "--"],
  ids: {},
  owner: undefined,
};

export interface OsUserRequest {
  /** Our effective user id. */
  readonly uid: number;
  readonly dataDir: string;
  readonly clusterDir: string;
  readonly binaries: Binaries;
}

/**
 * Chooses the account for PostgreSQL's processes. For root: the owner of the cluster where that is another user, else a
 * user of its own. Where root is an ordinary user outside of its user namespace and has no other user inside, a nested namespace.
 *
 * @throws KeyholdError `DATABASE_UNAVAILABLE` that says what to do when root has none of them.
 */
export async function chooseOsUsers(request: OsUserRequest): Promise<OsUsers> {
  if (request.uid !== 0) return ownOsUser;
  const cluster = await stat(request.clusterDir).catch(() => undefined);
  const outside = await outsideUid(dedicated.uid);
  if (cluster !== undefined && cluster.uid !== 0)
    return drop(request, { uid: cluster.uid, gid: cluster.gid || dedicated.gid });
  return outside === undefined ? nest(request) : drop(request, dedicated);
}

async function drop({ dataDir, binaries }: OsUserRequest, owner: UserIds): Promise<OsUsers> {
  const programs = dirname(dirname(binaries.postgres));
  await letPass(dataDir);
  await letRun(programs, binaries);
  const hidden = await privateParents([dataDir, programs], owner).catch((cause) => {
    throw noAccount(`user ${owner.uid} cannot be used (${reasonOf(cause)})`, "allow it to change its user");
  });
  const runAs = (ids: UserIds): RunAs =>
    hidden.length === 0
      ? { prefix: [], ids, owner: ids }
      : { prefix: inMountNamespace(hidden, ids), ids: {}, owner: ids };
  const account: OsUsers = { server: runAs(owner), initializer: runAs(nobody) };
  const barred =
    (await refusal(account.server, ["test", "-x", dataDir]).then((no) => no && `it cannot enter ${dataDir}: ${no}`)) ??
    (await refusal(account.server, [binaries.postgres, "--version"]));
  if (barred === undefined) return account;
  throw noAccount(
    `user ${owner.uid} cannot run it (${barred})`,
    "move the data folder and Keyhold out of private folders",
  );
}

async function nest({ binaries }: OsUserRequest): Promise<OsUsers> {
  const remedy = `map user ${dedicated.uid} into the user namespace`;
  if ((await outsideUid(0)) === 0) throw noAccount(`user ${dedicated.uid} is not mapped`, remedy);
  const barred = await refusal(nested, [binaries.postgres, "--version"]);
  if (barred !== undefined)
    throw noAccount(`user ${dedicated.uid} is not mapped, nor can a namespace be made (${barred})`, remedy);
  return { server: nested, initializer: nested };
}

/** Others may pass through the data folder to PostgreSQL's own folder. What is in it has modes of its own. */
async function letPass(dataDir: string): Promise<void> {
  await chmod(dataDir, (await stat(dataDir)).mode | 0o011);
}

/** A strict umask while npm installed leaves the programs to root alone. They are a public package's. */
async function letRun(programs: string, { postgres }: Binaries): Promise<void> {
  if (((await stat(postgres)).mode & 0o005) === 0o005) return;
  await promisify(execFile)("chmod", ["-R", "go+rX", programs], { env: childEnvironment }).catch(() => undefined);
}

/** The uid in the parent of our user namespace (user_namespaces(7)); undefined if it has none and cannot be used. */
async function outsideUid(uid: number): Promise<number | undefined> {
  const map = await readFile("/proc/self/uid_map", "utf8").catch(() => "0 0 4294967295");
  for (const line of map.trim().split("\n")) {
    const [inside = 0, outside = 0, length = 0] = line.trim().split(/\s+/).map(Number);
    if (uid >= inside && uid - inside < length) return outside + uid - inside;
  }
  return undefined;
}

function noAccount(why: string, remedy: string): KeyholdError {
  return new KeyholdError(
    "DATABASE_UNAVAILABLE",
    `PostgreSQL does not run as root, and ${why}: start Keyhold as another user, set KEYHOLD_DATABASE_URL, or ${remedy}`,
  );
}

/** Why the command does not run as that user, or undefined if it does. The kernel's own answer beats a guess. */
function refusal({ prefix, ids }: RunAs, command: readonly string[]): Promise<string | undefined> {
  const [file = "", ...args] = [...prefix, ...command];
  return promisify(execFile)(file, args, { ...ids, env: childEnvironment, cwd: "/" }).then(() => undefined, reasonOf);
}

function reasonOf(error: Error & { readonly stderr?: string }): string {
  return error.stderr?.trim() || error.message;
}
