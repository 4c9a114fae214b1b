import { randomBytes } from "node:crypto";
import { copyFile, mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import postgres, { type Sql } from "postgres";
import { findBinaries } from "../../src/embedded-postgres/binaries.ts";
import { clusterDirOf, database, ensureCluster, owner, serverRole } from "../../src/embedded-postgres/cluster.ts";
import { chooseOsUsers } from "../../src/embedded-postgres/os-user.ts";
import { changeOwnerOfTree } from "../../src/embedded-postgres/ownership.ts";
import { startPostmaster } from "../../src/embedded-postgres/postmaster.ts";
import { poll, signalProcess } from "../../src/embedded-postgres/process.ts";
import { makeSocketDir } from "../../src/embedded-postgres/socket.ts";
import type { Running } from "../../src/lib/supervise.ts";
import { type Host, socketFile } from "../../src/postgres/connection/connection-url.ts";
import { bringUpToDate } from "../../src/postgres/migrations/schema.ts";
import { freePort } from "./free-port.ts";
import { childrenOf } from "./keyhold.ts";

export type Settings = Readonly<Record<string, string>>;

/**
 * A PostgreSQL server with the bundled programs, which listens on 127.0.0.1 and stops with this process. It is not restarted when it
 * exits.
 */
export interface PostgresServer {
  /** Name of the standby in `synchronous_standby_names` of its primary. */
  readonly name: string;
  readonly port: number;
  /** `127.0.0.1:port` */
  readonly address: string;
  /** Process id of the current or latest postmaster. */
  readonly pid: number;
  /** A superuser's connections over the Unix socket, which network faults do not affect. */
  readonly admin: Sql;
  /** Returns the URL for a Keyhold server, optionally with other addresses, such as `127.0.0.1:1,127.0.0.1:2`. */
  url(addresses?: string): string;
  /** Returns the URL for the owner of the schema. */
  ownerUrl(addresses?: string): string;
  /** Changes settings of the running server (ALTER SYSTEM; null: the default) and resolves when they are effective. */
  configure(settings: Readonly<Record<string, string | null>>): Promise<void>;
  /**
   * Creates a standby from a new base backup and resolves when it streams from `upstream`, by default this server's address. It is
   * synchronous if the server's `synchronous_standby_names` has its name.
   */
  addStandby(
    name: string,
    options?: { readonly upstream?: string; readonly settings?: Settings },
  ): Promise<PostgresServer>;
  /** Takes a base backup with the WAL that it needs to start. Replaces an earlier one. */
  backUp(): Promise<void>;
  /** Replaces the files of the stopped server by those of the last backup; later changes are lost. */
  restore(): Promise<void>;
  /** Resolves when the standby of this name has replayed all current commits. */
  untilReplayed(name: string): Promise<void>;
  /** Promotes a standby to a new timeline; resolves when it accepts writes. */
  promote(): Promise<void>;
  /** Starts the server after `stop` or `kill`, on the same port. */
  start(): Promise<void>;
  /** Fast shutdown. */
  stop(): Promise<void>;
  /** SIGKILL to the postmaster and all its backends. */
  kill(): Promise<void>;
  /** SIGSTOP to the postmaster and all its backends: the kernel accepts connections, and nothing is answered. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Stops the server and closes the superuser's connections. Its files stay. */
  close(): Promise<void>;
}

/** Also for replication. No other user can enter the folder of the socket. */
const HOST_RULES =
  "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\nhost replication all 127.0.0.1/32 scram-sha-256\n";

/** WAL that is kept for standbys. */
const SETTINGS: Settings = { listen_addresses: "127.0.0.1", wal_keep_size: "256MB", max_connections: "100" };

/** Files that are excluded from a base backup (PostgreSQL docs, 25.3.4.1). */
const NOT_COPIED =
  /^(pg_wal|pg_replslot|pg_stat_tmp|pg_subtrans|pg_notify|pg_serial|pg_snapshots|pg_dynshmem)\/|^postmaster\./;

const START_TIMEOUT = 60_000;

/** Starts a primary with Keyhold's schema in a new folder below this one. `settings` override the defaults, and standbys inherit them. */
export async function startPrimary(dir: string, name = "primary", settings: Settings = {}): Promise<PostgresServer> {
  const password = randomBytes(16).toString("hex");
  const server = await Server.create({ dir, name, password, settings });
  await writeFile(join(server.clusterDir, "pg_hba.conf"), HOST_RULES);
  await server.start();
  for (const role of [owner, serverRole, "postgres"])
    await server.admin.unsafe(`ALTER ROLE ${role} PASSWORD '${password}'`);
  await bringUpToDate(server.ownerUrl(), serverRole);
  return server;
}

interface ServerOptions {
  readonly dir: string;
  readonly name: string;
  readonly password: string;
  readonly settings: Settings;
}

class Server implements PostgresServer {
  readonly name: string;
  readonly port: number;
  readonly admin: Sql;
  readonly clusterDir: string;
  readonly #options: ServerOptions;
  readonly #launch: () => Promise<Running>;
  readonly #backupDir: string;
  #postmaster: Running | null = null;
  #pid = 0;

  private constructor(options: ServerOptions, port: number, admin: Sql, launch: () => Promise<Running>) {
    this.#options = options;
    this.name = options.name;
    this.clusterDir = clusterDirOf(join(options.dir, options.name));
    this.#backupDir = `${this.clusterDir}.backup`;
    this.port = port;
    this.admin = admin;
    this.#launch = launch;
  }

  /** Creates a server, not started, with a cluster created by initdb or by `fill`. */
  static async create(options: ServerOptions, fill?: (clusterDir: string) => Promise<void>): Promise<Server> {
    const dataDir = join(options.dir, options.name);
    const clusterDir = clusterDirOf(dataDir);
    await mkdir(dataDir, { recursive: true });
    await fill?.(clusterDir);
    const binaries = await findBinaries();
    const account = await chooseOsUsers({ uid: process.geteuid?.() ?? 0, dataDir, clusterDir, binaries });
    if (fill === undefined) await ensureCluster(dataDir, account, binaries);
    const socketDir = await makeSocketDir(clusterDir, account.server);
    const port = await freePort();
    const launch = async () => {
      // A restored backup belongs to the user who restored it.
      await changeOwnerOfTree(clusterDir, account.server);
      return startPostmaster(
        {
          ...{ runAs: account.server, program: binaries.postgres, clusterDir, socketDir },
          settings: { ...SETTINGS, ...options.settings, port: String(port) },
          startTimeoutMs: START_TIMEOUT,
          log: () => {},
          onLaunched: () => {},
        },
        new AbortController().signal,
      );
    };
    return new Server(options, port, superuserOf({ name: socketDir, port }), launch);
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.#pid;
  }

  url(addresses = this.address): string {
    return `postgres://${serverRole}:${this.#options.password}@${addresses}/${database}`;
  }

  ownerUrl(addresses = this.address): string {
    return `postgres://${owner}:${this.#options.password}@${addresses}/${database}`;
  }

  async configure(settings: Readonly<Record<string, string | null>>): Promise<void> {
    for (const [name, value] of Object.entries(settings))
      await this.admin.unsafe(`ALTER SYSTEM SET ${name} = ${value === null ? "DEFAULT" : `'${value}'`}`);
    const loadTime = () => this.#once((sql) => sql`SELECT pg_conf_load_time()::text AS time`);
    const [before] = await loadTime();
    await this.admin`SELECT pg_reload_conf()`;
    // A new backend has the settings that the postmaster has loaded.
    await this.#until(async () => (await loadTime())[0]?.time !== before?.time);
    // The checkpointer controls whether commits wait for standbys, and loads settings before it executes a request.
    await this.admin`CHECKPOINT`;
  }

  async addStandby(name: string, { upstream = this.address, settings = {} } = {}): Promise<PostgresServer> {
    const [host, port] = upstream.split(":");
    const { password, dir } = this.#options;
    const source = `host=${host} port=${port} user=postgres password=${password} application_name=${name}`;
    const options = {
      dir,
      name,
      password,
      settings: { ...this.#options.settings, ...settings, primary_conninfo: source },
    };
    const standby = await Server.create(options, async (to) => {
      await this.#backUp(to);
      await writeFile(join(to, "standby.signal"), "");
    });
    await standby.start();
    await this.#until(async () => {
      const rows = await this.admin`
        SELECT FROM pg_stat_replication WHERE application_name = ${name} AND state = 'streaming'`;
      return rows.length > 0;
    });
    return standby;
  }

  /** The backup ends with its connection. */
  async #backUp(to: string): Promise<void> {
    const label = await this.#once(async (sql) => {
      await sql`SELECT pg_backup_start('standby', true)`;
      await copyCluster(this.clusterDir, to);
      const [row] = await sql`SELECT labelfile FROM pg_backup_stop(false)`;
      return String(row?.labelfile);
    });
    await writeFile(join(to, "backup_label"), label);
  }

  async backUp(): Promise<void> {
    await rm(this.#backupDir, { recursive: true, force: true });
    await this.#backUp(this.#backupDir);
    const wal = "pg_wal";
    for (const entry of await readdir(join(this.clusterDir, wal), { withFileTypes: true }))
      if (entry.isFile())
        await copyFile(join(this.clusterDir, wal, entry.name), join(this.#backupDir, wal, entry.name)).catch(
          ignoreDeleted,
        );
  }

  async restore(): Promise<void> {
    await rm(this.clusterDir, { recursive: true });
    await rename(this.#backupDir, this.clusterDir);
  }

  async untilReplayed(name: string): Promise<void> {
    const [now] = await this.admin`SELECT pg_current_wal_lsn()::text AS lsn`;
    await this.#until(async () => {
      const rows = await this.admin`
        SELECT FROM pg_stat_replication WHERE application_name = ${name} AND replay_lsn >= ${now?.lsn}::pg_lsn`;
      return rows.length > 0;
    });
  }

  async promote(): Promise<void> {
    await this.admin`SELECT pg_promote(true, ${START_TIMEOUT / 1000})`;
  }

  async start(): Promise<void> {
    this.#postmaster = await this.#launch();
    this.#pid = this.#postmaster.pid;
  }

  async stop(): Promise<void> {
    await this.#postmaster?.stop();
    this.#postmaster = null;
  }

  async kill(): Promise<void> {
    await this.#signal("SIGKILL");
    await this.#postmaster?.exited;
    this.#postmaster = null;
  }

  pause(): Promise<void> {
    return this.#signal("SIGSTOP");
  }

  resume(): Promise<void> {
    return this.#signal("SIGCONT");
  }

  async close(): Promise<void> {
    await this.admin.end({ timeout: 1 });
    await this.resume();
    await this.stop();
  }

  /** Signals the postmaster first, so that it starts no further backend; the second pass finds one that it started just before. */
  async #signal(signal: NodeJS.Signals): Promise<void> {
    if (this.#postmaster === null) return;
    const first = [this.#pid, ...(await childrenOf(this.#pid))];
    for (const pid of first) signalProcess(pid, signal);
    for (const pid of await childrenOf(this.#pid)) if (!first.includes(pid)) signalProcess(pid, signal);
  }

  async #once<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
    const sql = postgres({ ...(this.admin.options as object), max: 1 });
    return work(sql).finally(() => sql.end());
  }

  async #until(condition: () => Promise<boolean>): Promise<void> {
    await poll(async () => (await condition()) || undefined, AbortSignal.timeout(START_TIMEOUT));
  }
}

/**
 * Connects a superuser over the Unix socket, without the driver's query for types, whose failure would be an unhandled rejection
 * (porsager/postgres#1192).
 */
export function superuserOf(socket: Host): Sql {
  const how = { max: 4, backoff: () => 0.05, fetch_types: false, onnotice: () => {} };
  return postgres({ ...how, path: socketFile(socket), user: "postgres", database });
}

/** Ignores files that are deleted during the copy; the standby repeats the deletion from the WAL. */
async function copyCluster(from: string, to: string, inside = ""): Promise<void> {
  await mkdir(join(to, inside), { mode: 0o700 });
  for (const entry of await readdir(join(from, inside), { withFileTypes: true })) {
    const path = join(inside, entry.name);
    if (entry.isDirectory()) await copyCluster(from, to, path);
    else if (entry.isFile() && !NOT_COPIED.test(path))
      await copyFile(join(from, path), join(to, path)).catch(ignoreDeleted);
  }
}

function ignoreDeleted(error: NodeJS.ErrnoException): void {
  if (error.code !== "ENOENT") throw error;
}
