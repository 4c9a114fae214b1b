import { chmod, readFile, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { KeyholdError } from "../domain/errors.ts";
import type { Binaries } from "./binaries.ts";
import { asOurselves, type RunAs, runProgram, type UserIds } from "./process.ts";

/** PostgreSQL does not run as root, and a superuser's `COPY … TO PROGRAM` must not run as root either, so root uses an unprivileged user. */
export interface OsUsers {
  readonly server: RunAs;
  /** For initdb and single-user mode, which require an entry in passwd(5). */
  readonly initializer: RunAs;
}

/** Not in passwd(5) nor in a range of systemd or Debian: no other process runs as this user, so none can open the socket. */
const dedicated: UserIds = { uid: 65530, gid: 65530 };

const nobody: UserIds = { uid: 65534, gid: 65534 };

export const ownOsUser: OsUsers = { server: asOurselves, initializer: asOurselves };

/** Is `nobody` inside the namespace and our uid outside, so it is suitable only where our uid is not the real root. */
const nested: RunAs = {
  ...asOurselves,
  prefix: ["unshare", "--user", `--map-user=${nobody.uid}`, `--map-group=${nobody.gid}`, "--"],
};

export interface OsUserRequest {
  readonly uid: number;
  readonly dataDir: string;
  readonly clusterDir: string;
  readonly binaries: Binaries;
}

/**
 * Returns the OS users for PostgreSQL's processes. For root: the owner of the cluster if that is another user, else a dedicated
 * user; where root is an ordinary user outside of its user namespace and no other user is mapped, a nested namespace.
 *
 * @throws KeyholdError `DATABASE_UNAVAILABLE` with a remedy when root can use none of them.
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
  const paths = [dataDir, programs];
  // Lets other users traverse the data directory. Its files have modes of their own.
  await chmod(dataDir, (await stat(dataDir)).mode | 0o011);
  await makeExecutable(programs, binaries);
  const inaccessible = await Promise.all(paths.map((path) => firstInaccessible(path, owner))).catch(({ message }) => {
    throw noOsUser(`Keyhold cannot switch to user ${owner.uid} (${message})`, "allow Keyhold to switch users");
  });
  const parents = [...new Set(inaccessible)].filter((parent) => parent !== "");
  const runAs = (ids: UserIds): RunAs =>
    parents.length === 0
      ? { prefix: [], ids, owner: ids }
      : { prefix: inMountNamespace(paths, parents, ids), ids: {}, owner: ids };
  const users: OsUsers = { server: runAs(owner), initializer: runAs(nobody) };
  const failure =
    (await failureOf(users.server, ["test", "-x", dataDir]).then((no) => no && `it cannot access ${dataDir}: ${no}`)) ??
    (await failureOf(users.server, [binaries.postgres, "--version"]));
  if (failure === undefined) return users;
  throw noOsUser(
    `user ${owner.uid} cannot run PostgreSQL (${failure})`,
    "move the data directory and Keyhold out of directories that only their owner can access",
  );
}

async function nest({ binaries }: OsUserRequest): Promise<OsUsers> {
  const remedy = `map user ${dedicated.uid} into the user namespace`;
  if ((await outsideUid(0)) === 0) throw noOsUser(`user ${dedicated.uid} is not mapped in the user namespace`, remedy);
  const failure = await failureOf(nested, [binaries.postgres, "--version"]);
  if (failure !== undefined)
    throw noOsUser(`user ${dedicated.uid} is not mapped, and no user namespace can be created (${failure})`, remedy);
  return { server: nested, initializer: nested };
}

/** With a strict umask, npm installs the programs readable by root only. They are public. */
async function makeExecutable(programs: string, { postgres }: Binaries): Promise<void> {
  if (((await stat(postgres)).mode & 0o005) === 0o005) return;
  await runProgram(asOurselves, ["chmod", "-R", "go+rX", programs]).catch(() => undefined);
}

/** Returns the uid in the parent of our user namespace (user_namespaces(7)); undefined if it is not mapped. */
async function outsideUid(uid: number): Promise<number | undefined> {
  const map = await readFile("/proc/self/uid_map", "utf8").catch(() => "0 0 4294967295");
  for (const line of map.trim().split("\n")) {
    const [inside = 0, outside = 0, length = 0] = line.trim().split(/\s+/).map(Number);
    if (uid >= inside && uid - inside < length) return outside + uid - inside;
  }
  return undefined;
}

function noOsUser(why: string, remedy: string): KeyholdError {
  return new KeyholdError(
    "DATABASE_UNAVAILABLE",
    `PostgreSQL cannot run as root, and ${why}: run Keyhold as a non-root user, set KEYHOLD_DATABASE_URL, or ${remedy}`,
  );
}

/** Runs the command as the user. Returns why it failed, or undefined. */
async function failureOf(runAs: RunAs, command: readonly string[]): Promise<string | undefined> {
  return runProgram(runAs, command).then(
    () => undefined,
    ({ message }) => message,
  );
}

/** Returns the topmost folder above the path that the user cannot enter; empty if there is none. */
function firstInaccessible(path: string, ids: UserIds): Promise<string> {
  const script = 'for dir; do test -x "$dir" || { printf %s "$dir"; break; }; done';
  return runProgram({ ...asOurselves, ids }, ["sh", "-c", script, "sh", ...foldersAbove(path)]);
}

function foldersAbove(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [] : [...foldersAbove(parent), parent];
}

/**
 * Returns the command that runs the arguments after it as the user, in a mount namespace in which the paths are reachable under their names
 * and nothing else of these private parents is visible. Requires CAP_SYS_ADMIN; the process keeps its id.
 */
function inMountNamespace(
  paths: readonly string[],
  parents: readonly string[],
  { uid, gid }: UserIds,
): readonly string[] {
  const script = [
    "set -e",
    "umask 022",
    // Opened before they are covered.
    ...paths.map((_, at) => `exec ${at + 3}<"$${at + 1}"`),
    ...parents.map((_, at) => `mount -t tmpfs -o mode=755 keyhold "$${paths.length + at + 1}"`),
    ...paths.map((_, at) => `mkdir -p "$${at + 1}"`),
    ...paths.map((_, at) => `mount --no-canonicalize --rbind /proc/self/fd/${at + 3} "$${at + 1}"`),
    ...paths.map((_, at) => `exec ${at + 3}<&-`),
    `shift ${paths.length + parents.length}`,
    `exec setpriv --reuid=${uid} --regid=${gid} --clear-groups --no-new-privs -- "$@"`,
  ].join("\n");
  return ["unshare", "--mount", "--", "sh", "-c", script, "sh", ...paths, ...parents];
}
