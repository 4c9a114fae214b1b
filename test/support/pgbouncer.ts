import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import postgres from "postgres";
import { findBinaries } from "../../src/embedded-postgres/binaries.ts";
import { chooseOsUsers } from "../../src/embedded-postgres/os-user.ts";
import { freePort } from "./free-port.ts";
import { hasEnded } from "./programs/child.ts";

const ADMIN = "pgbouncer";

export async function hasPgBouncer(): Promise<boolean> {
  return promisify(execFile)("pgbouncer", ["--version"], { env: environment }).then(
    () => true,
    () => false,
  );
}

/** Debian installs it where not every user's PATH points. */
const environment = { PATH: `${process.env.PATH}:/usr/sbin` };

/** PgBouncer in transaction mode in front of one server. */
export class PgBouncer {
  readonly port: number;
  /** The URL of the database through PgBouncer. */
  readonly url: string;
  readonly #dir: string;
  readonly #child: ChildProcess;

  private constructor(port: number, url: string, dir: string, child: ChildProcess) {
    this.port = port;
    this.url = url;
    this.#dir = dir;
    this.#child = child;
  }

  /** Starts PgBouncer for the role and the database of a URL, in a new folder below this one, with so many connections to the server. */
  static async start(dir: string, target: string, poolSize = 60): Promise<PgBouncer> {
    const [own, port] = [await mkdtemp(join(dir, "pgbouncer-")), await freePort()];
    await chmod(own, 0o755);
    const { username, password } = new URL(target);
    await writeFile(join(own, "users.txt"), `"${username}" "${password}"\n"${ADMIN}" "${password}"\n`);
    await configure(own, port, target, poolSize);
    // PgBouncer does not run as root either.
    const { initializer: nobody } = await chooseOsUsers({
      uid: process.geteuid?.() ?? 0,
      dataDir: own,
      clusterDir: own,
      binaries: await findBinaries(),
    });
    const [program = "", ...args] = [...nobody.prefix, "pgbouncer", join(own, "pgbouncer.ini")];
    const child = spawn(program, args, { ...nobody.ids, env: environment, stdio: ["ignore", "ignore", "pipe"] });
    process.once("exit", () => child.kill("SIGKILL"));
    await once(child, "spawn");
    const log = text(child.stderr);
    while (!(await isListening(port))) {
      if (child.exitCode !== null) throw new Error(`pgbouncer exited with code ${child.exitCode}: ${await log}`);
      await sleep(20);
    }
    const url = Object.assign(new URL(target), { port: String(port) });
    return new PgBouncer(port, url.href, own, child);
  }

  /** Moves all connections to another server, each at the end of its transaction. */
  async redirectTo(target: string): Promise<void> {
    await configure(this.#dir, this.port, target);
    const url = new URL(target);
    const admin = postgres({
      ...{ host: "127.0.0.1", port: this.port, user: ADMIN, password: url.password, database: "pgbouncer" },
      ...{ max: 1, fetch_types: false, onnotice: () => {} },
    });
    for (const command of ["RELOAD", "RECONNECT"]) await admin.unsafe(command).simple();
    await admin.end({ timeout: 1 });
  }

  async stop(): Promise<void> {
    if (hasEnded(this.#child)) return;
    this.#child.kill("SIGKILL");
    await once(this.#child, "exit");
  }
}

async function configure(dir: string, port: number, target: string, poolSize = 60): Promise<void> {
  const url = new URL(target);
  const name = url.pathname.slice(1);
  const lines = [
    "[databases]",
    `${name} = host=127.0.0.1 port=${url.port} dbname=${name}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = scram-sha-256",
    `auth_file = ${join(dir, "users.txt")}`,
    `admin_users = ${ADMIN}`,
    "pool_mode = transaction",
    `default_pool_size = ${poolSize}`,
    "server_login_retry = 1",
    "ignore_startup_parameters = statement_timeout,idle_in_transaction_session_timeout,enable_seqscan,jit,extra_float_digits",
  ];
  await writeFile(join(dir, "pgbouncer.ini"), `${lines.join("\n")}\n`);
}

function isListening(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  return once(socket, "connect").then(
    () => {
      socket.destroy();
      return true;
    },
    () => false,
  );
}
