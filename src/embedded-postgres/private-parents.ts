import { execFile } from "node:child_process";
import { dirname } from "node:path";
import { promisify } from "node:util";
import type { UserIds } from "./os-user.ts";
import { childEnvironment } from "./process.ts";

/** A folder that a user cannot reach because its ancestor `parent` is private. */
export interface HiddenFolder {
  readonly path: string;
  readonly parent: string;
}

/** Returns the folders that the user cannot reach, each with its topmost ancestor that the user cannot enter. */
export async function privateParents(paths: readonly string[], ids: UserIds): Promise<HiddenFolder[]> {
  const found = await Promise.all(paths.map(async (path) => ({ path, parent: await firstInaccessible(path, ids) })));
  return found.filter(({ parent }) => parent !== "");
}

async function firstInaccessible(path: string, ids: UserIds): Promise<string> {
  const script = 'for dir; do test -x "$dir" || { printf %s "$dir"; break; }; done';
  const args = ["-c", script, "sh", ...foldersAbove(path)];
  const { stdout } = await promisify(execFile)("sh", args, { ...ids, env: childEnvironment, cwd: "/" });
  return stdout;
}

function foldersAbove(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [] : [...foldersAbove(parent), parent];
}

/**
 * Returns the command that runs the arguments after it as the user, in a mount namespace in which the hidden folders are reachable
 * under their paths and nothing else of their private ancestors is visible. Requires CAP_SYS_ADMIN; the process keeps its id.
 */
export function inMountNamespace(hidden: readonly HiddenFolder[], { uid, gid }: UserIds): readonly string[] {
  const paths = hidden.map(({ path }) => path);
  const parents = [...new Set(hidden.map(({ parent }) => parent))];
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
