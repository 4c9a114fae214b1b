import { createHash } from "node:crypto";
import { lstat, mkdir, rm } from "node:fs/promises";
import type { Socket } from "node:net";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KeyholdError } from "../../errors.ts";
import { parseConnectionUrl, socketFile } from "../connection-url.ts";
import type { RunAs } from "./account.ts";
import { openClientSocket } from "./client-socket.ts";
import { give } from "./ownership.ts";

/** sun_path with its closing zero takes 108 bytes on Linux, 104 on macOS (unix(7), sys/un.h). */
const maxSocketPathBytes = 103;

/** Of the embedded server, which has the usual port and listens on none. */
function socketPath(socketDir: string): string {
  return socketFile({ name: socketDir, port: 5432 });
}

/**
 * The private folder for the server's socket: the cluster itself, which PostgreSQL keeps at mode 0700, or one in the
 * system's folder for temporary files where that path would be too long for a socket.
 */
export async function makeSocketDir(clusterDir: string, server: RunAs): Promise<string> {
  if (Buffer.byteLength(socketPath(clusterDir)) <= maxSocketPathBytes) return clusterDir;
  const name = createHash("sha256").update(clusterDir).digest("hex").slice(0, 16);
  const dir = join(tmpdir(), `keyhold-${name}`);
  const made = await mkdir(dir, { mode: 0o700 }).then(
    () => true,
    () => false,
  );
  if (!made) await assertPrivate(dir, server);
  await give(dir, server);
  return dir;
}

/** The name is predictable and the parent shared, so another user may have been there first. */
async function assertPrivate(dir: string, { owner }: RunAs): Promise<void> {
  const found = await lstat(dir);
  const isOurs = found.uid === owner?.uid || found.uid === process.geteuid?.();
  if (found.isDirectory() && isOurs && (found.mode & 0o077) === 0) return;
  throw new KeyholdError("DATABASE_UNAVAILABLE", `${dir} is not a private folder of ours: remove it`);
}

/**
 * Removes the lock that a killed server left beside its socket, which bars the next one if another program has its number
 * by now. The folder is this cluster's alone, so that whoever holds the cluster may do it.
 */
export async function clearSocketLock(socketDir: string): Promise<void> {
  await rm(`${socketPath(socketDir)}.lock`, { force: true });
}

/** Whether a server accepts connections there, even one whose process is hidden from us in another container. */
export function answers(socketDir: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath(socketDir));
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

/** The URL of a database behind a socket, with the folder as an escaped host, as libpq reads it (PostgreSQL docs, 32.1.1.2). */
export function socketUrl(socketDir: string, user: string, database: string): string {
  return `postgres://${user}@${encodeURIComponent(socketDir)}/${database}`;
}

/** Options of the `postgres` client; its types do not know `socket`. */
export interface SocketOptions {
  readonly path?: string;
  readonly socket?: () => Socket;
}

/**
 * What the `postgres` client must be told apart from a URL of `socketUrl`'s form, which it does not understand by itself:
 * `postgres(url, { ...socketOptions(url), … })`. Nothing for a URL with a host name.
 */
export function socketOptions(url: string): SocketOptions {
  const [host] = parseConnectionUrl(url).hosts;
  if (host === undefined || !host.name.startsWith("/")) return {};
  const path = socketFile(host);
  return { path, socket: () => openClientSocket({ path }) };
}
