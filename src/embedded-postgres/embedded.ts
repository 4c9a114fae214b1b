import { mkdir, realpath, rm } from "node:fs/promises";
import { KeyholdError } from "../domain/errors.ts";
import { type Running, supervise } from "../lib/supervise.ts";
import { findBinaries } from "./binaries.ts";
import { clusterDirOf, database, ensureCluster, owner, serverRole, superuser } from "./cluster.ts";
import { acquireLock, type LockOwner } from "./lock.ts";
import { chooseOsUsers } from "./os-user.ts";
import { changeOwnerOfTree } from "./ownership.ts";
import { untilReady } from "./pid-file.ts";
import { defaultStartTimeoutMs, type PostmasterOptions, type StartOptions, startPostmaster } from "./postmaster.ts";
import { untilGone } from "./process.ts";
import { clearSocketLock, makeSocketDir, socketUrl } from "./socket.ts";

export interface EmbeddedOptions extends StartOptions {
  /** Keyhold's data directory, made if absent. PostgreSQL's files go into `postgres` under it. */
  readonly dataDir: string;
  /**
   * What to do when another Keyhold process has its server on this data directory: `reject` (the default, for `serve`), or
   * `attach` (for commands) to use that one.
   */
  readonly ifRunning?: "reject" | "attach";
}

export interface EmbeddedPostgres extends ReturnType<typeof urlsOf> {
  /** The server process; another one after a crash. */
  readonly pid: number;
  /** Stops the server unless it is another process's. May be called again. */
  stop(): Promise<void>;
}

/**
 * Starts a PostgreSQL server on the data directory, which is initialized the first time, and resolves when it accepts connections. It
 * listens on a Unix socket in a private folder and on no network address. It stops when this process ends, even by SIGKILL, and is
 * restarted if it exits. Files and processes that a killed predecessor left are removed.
 *
 * @throws KeyholdError `DATABASE_UNAVAILABLE` with a remedy: the folder is in use, the programs are not installed, no OS user is
 * suitable, the server does not start.
 */
export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  await mkdir(options.dataDir, { recursive: true, mode: 0o700 });
  const dataDir = await realpath(options.dataDir);
  const rival = await acquireLock(clusterDirOf(dataDir), options.log);
  if (rival !== undefined) return yieldTo(rival, dataDir, options);
  try {
    return await own(dataDir, options);
  } catch (error) {
    const winner = await acquireLock(clusterDirOf(dataDir), options.log).catch(() => undefined);
    if (winner === undefined) throw error;
    return yieldTo(winner, dataDir, options);
  }
}

async function own(dataDir: string, options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const { log } = options;
  const postmaster = await prepare(dataDir, options);
  const { clusterDir, socketDir } = postmaster;
  const server = await supervise("PostgreSQL", (signal) => startClaimed(postmaster, dataDir, signal), log);
  return {
    ...urlsOf(socketDir),
    get pid() {
      return server.pid;
    },
    async stop() {
      await server.stop();
      if (socketDir !== clusterDir) await rm(socketDir, { recursive: true, force: true });
    },
  };
}

async function prepare(dataDir: string, options: EmbeddedOptions): Promise<PostmasterOptions> {
  const clusterDir = clusterDirOf(dataDir);
  const binaries = await findBinaries();
  const users = await chooseOsUsers({ uid: process.geteuid?.() ?? 0, dataDir, clusterDir, binaries });
  await ensureCluster(dataDir, users, binaries);
  // Root may have restored or edited files, and earlier releases ran PostgreSQL with the user id of root.
  const changed = await changeOwnerOfTree(clusterDir, users.server);
  if (changed > 0)
    options.log("info", `changed the owner of ${changed} files in ${clusterDir} to user ${users.server.owner?.uid}`);
  const socketDir = await makeSocketDir(clusterDir, users.server);
  return { ...options, runAs: users.server, program: binaries.postgres, clusterDir, socketDir };
}

/** A command may have acquired the folder while our server was down. */
async function startClaimed(options: PostmasterOptions, dataDir: string, signal: AbortSignal): Promise<Running> {
  const rival = await acquireLock(options.clusterDir, options.log);
  if (rival !== undefined) throw inUse(dataDir, rival);
  await clearSocketLock(options.socketDir);
  return startPostmaster(options, signal);
}

async function yieldTo(rival: LockOwner, dataDir: string, options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  if (options.ifRunning !== "attach" || rival.keyholdPid === null) throw inUse(dataDir, rival);
  const socketDir = await socketOf(rival, dataDir, options.startTimeoutMs ?? defaultStartTimeoutMs);
  if (socketDir === undefined) return startEmbeddedPostgres(options);
  return { ...urlsOf(socketDir), pid: rival.pid, stop: async () => {} };
}

/**
 * Returns the URLs, which never change, of the owner of the database `keyhold`, of the superuser, and of `serverRole`, which may read and
 * write, and not change the schema. A cluster of an older release may lack that role.
 */
function urlsOf(socketDir: string) {
  const urlOf = (role: string) => socketUrl(socketDir, role, database);
  return { url: urlOf(owner), serverUrl: urlOf(serverRole), superuserUrl: urlOf(superuser), serverRole };
}

/** Returns the socket folder of the other process's server; undefined if it ends before it accepts connections. */
async function socketOf(rival: LockOwner, dataDir: string, timeoutMs: number): Promise<string | undefined> {
  try {
    const gone = (signal: AbortSignal) => untilGone(rival.pid, signal).then(() => undefined);
    const file = await untilReady(clusterDirOf(dataDir), rival.pid, gone, AbortSignal.timeout(timeoutMs));
    return file?.socketDir;
  } catch (cause) {
    const message = `PostgreSQL process ${rival.pid} on ${dataDir} is not accepting connections`;
    throw new KeyholdError("DATABASE_UNAVAILABLE", message, { cause });
  }
}

function inUse(dataDir: string, rival: LockOwner): KeyholdError {
  const holder = rival.keyholdPid === null ? `PostgreSQL process ${rival.pid}` : `process ${rival.keyholdPid}`;
  return new KeyholdError("DATABASE_UNAVAILABLE", `data directory ${dataDir} is in use by ${holder}`);
}
