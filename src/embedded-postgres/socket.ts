import { createHash } from "node:crypto";
import { lstat, mkdir, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KeyholdError } from "../domain/errors.ts";
import { changeOwner } from "./ownership.ts";
import type { RunAs } from "./process.ts";

/** sun_path with its closing zero takes 108 bytes on Linux, 104 on macOS (unix(7), sys/un.h). */
const maxSocketPathBytes = 103;

/** Returns the path of the socket. Its name has the default port, though the server listens on none. */
function socketPath(socketDir: string): string {
  return join(socketDir, ".s.PGSQL.5432");
}

/**
 * Creates the private folder of the server's socket: the cluster itself, which PostgreSQL keeps at mode 0700, or a folder in the
 * system's temporary folder if the path would be too long for a socket.
 */
export async function makeSocketDir(clusterDir: string, server: RunAs): Promise<string> {
  if (Buffer.byteLength(socketPath(clusterDir)) <= maxSocketPathBytes) return clusterDir;
  const name = createHash("sha256").update(clusterDir).digest("hex").slice(0, 16);
  const dir = join(tmpdir(), `keyhold-${name}`);
  await mkdir(dir, { mode: 0o700 }).catch(() => assertPrivate(dir, server));
  await changeOwner(dir, server);
  return dir;
}

/** The name is predictable and the parent is shared, so another user may have created the folder. */
async function assertPrivate(dir: string, { owner }: RunAs): Promise<void> {
  const found = await lstat(dir);
  const isOurs = found.uid === owner?.uid || found.uid === process.geteuid?.();
  if (found.isDirectory() && isOurs && (found.mode & 0o077) === 0) return;
  throw new KeyholdError("DATABASE_UNAVAILABLE", `socket directory ${dir} is not private: remove it`);
}

/**
 * Removes the lock file that a killed server left beside its socket; it blocks the next server if another program has reused the
 * process id. The folder belongs to this cluster alone, so the owner of the cluster may do it.
 */
export async function clearSocketLock(socketDir: string): Promise<void> {
  await rm(`${socketPath(socketDir)}.lock`, { force: true });
}

/** Returns whether a server accepts connections there, even one whose process is hidden in another container. */
export function answers(socketDir: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath(socketDir));
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

/** Returns the URL of a database behind a socket, with the folder as a percent-encoded host (libpq; PostgreSQL docs, 32.1.1.2). */
export function socketUrl(socketDir: string, user: string, database: string): string {
  return `postgres://${user}@${encodeURIComponent(socketDir)}/${database}`;
}
