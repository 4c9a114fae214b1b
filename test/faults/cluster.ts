import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, type WriteStream } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../support/free-port.ts";
import { WITHOUT_OWN_LIMITS } from "../support/own-limits.ts";
import { hasEnded } from "../support/programs/child.ts";
import type { TcpProxy } from "../support/tcp-proxy.ts";
import type { Defect } from "./fault-injection.ts";
import type { NodeMessage } from "./node.ts";
import type { PausePoint } from "./pause-points.ts";
import { type EndedProcess, monotonicTime, type UsageReport } from "./usage.ts";

/** The program of a node. */
export interface Program {
  /** Root of an installed checkout, whose `test/faults/node.ts` is started. */
  readonly checkout: string;
  /** Arguments that inject a defect. */
  readonly args: readonly string[];
}

/** This checkout. */
const CHECKOUT = resolve(import.meta.dirname, "../..");

/** The compile cache of `keyhold.js`; compiling takes half of the CPU time of a start. */
const COMPILE_CACHE = join(CHECKOUT, "node_modules/.cache/keyhold");

/** The TCP proxies between a node and its database, for data and for notifications; both may be the same. */
export interface Proxies {
  readonly data: TcpProxy;
  readonly feed: TcpProxy;
}

/** The access of a node to its database: its proxies, and the variables with their URLs. */
export interface Access {
  readonly proxies: Proxies;
  readonly environment: Readonly<Record<string, string>>;
}

export interface ClusterOptions {
  readonly nodes: number;
  readonly dir: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly defect: Defect | null;
  /** Default: this checkout, with the defect. */
  readonly program?: Program;
}

const HOUR = 3_600_000;

/** Milliseconds from one run of the job that stores usage to the next, at most: 11 s, and what a busy machine adds. */
const MAX_USAGE_INTERVAL = 16_000;

/** Returns the program of this checkout. */
export function currentProgram(defect: Defect | null): Program {
  return { checkout: CHECKOUT, args: defect === null ? [] : [`--defect=${defect}`] };
}

/** Starts nodes, each with its own access to the database and its own clock offset. */
export async function* startCluster(
  openAccess: () => Promise<Access>,
  options: ClusterOptions,
): AsyncGenerator<ClusterNode> {
  for (let place = 0; place < options.nodes; place++) {
    const { proxies, environment } = await openAccess();
    const own = { ...options, environment: { ...options.environment, ...environment } };
    const node = new ClusterNode(`node ${place + 1}`, await freePort(), proxies, own);
    node.clockOffset = (place - 1) * 5 * HOUR;
    yield node;
    // The first node creates the schema and the signing key.
    await node.start();
  }
}

/** A node in a separate process. It keeps its port when it is restarted. */
export class ClusterNode {
  readonly name: string;
  readonly port: number;
  readonly proxies: Proxies;
  /** What no fault has caused. */
  readonly unexpected: string[] = [];
  readonly endedProcesses: EndedProcess[] = [];
  clockOffset = 0;
  /** Takes effect at the next start. */
  program: Program;
  readonly #options: ClusterOptions;
  readonly #log: WriteStream;
  #child: ChildProcess | undefined;
  #isWanted = false;
  /** The time before which the process has stored the usage that it has counted. Milliseconds of `performance.now()`. */
  #usageStoredUntil = 0;
  #usageState: UsageReport["state"] = "stored";
  /** When the process began or ended to store usage last; null if it was suspended since. */
  #usageTime: number | null = null;

  constructor(name: string, port: number, proxies: Proxies, options: ClusterOptions) {
    this.name = name;
    this.port = port;
    this.proxies = proxies;
    this.program = options.program ?? currentProgram(options.defect);
    this.#options = options;
    this.#log = createWriteStream(join(options.dir, `${name.replace(" ", "-")}.log`), { flags: "a" });
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Starts the node unless another fault has, with retries, since its database may be unreachable. */
  async start(): Promise<void> {
    if (this.#isWanted) return;
    this.#isWanted = true;
    for (let attempts = 1; this.#isWanted; attempts++) {
      if (await this.#launch()) return;
      if (attempts === 100) throw new Error(`${this.name} does not start`);
      await sleep(100);
    }
  }

  async kill(): Promise<void> {
    this.#isWanted = false;
    const child = this.#child;
    if (child === undefined || hasEnded(child)) return;
    child.kill("SIGKILL");
    await ended(child);
    this.#noteEnd(false);
  }

  /** Lets the process finish its work, which includes that of background jobs. */
  async stop(): Promise<void> {
    this.#isWanted = false;
    const child = this.#child;
    if (child === undefined || hasEnded(child)) return;
    child.kill("SIGTERM");
    this.#noteEnd((await ended(child)) === 0 && this.#usageState === "stored");
  }

  suspend(): void {
    this.#child?.kill("SIGSTOP");
  }

  resume(): void {
    this.#usageTime = null;
    this.#child?.kill("SIGCONT");
  }

  /** Sets the offset of its wall clock. */
  setClock(offset: number): void {
    this.clockOffset = offset;
    this.#send({ clock: offset });
  }

  /** Makes the node stop itself (SIGSTOP) the next time it reaches this point, until `resume`; null: never. */
  pauseAt(point: PausePoint | null): void {
    this.#send({ pauseAt: point });
  }

  async isReady(): Promise<boolean> {
    const signal = AbortSignal.timeout(2_000);
    return fetch(`${this.url}/health/ready`, { signal }).then(
      async (response) => {
        await response.arrayBuffer();
        return response.status === 200;
      },
      () => false,
    );
  }

  async close(): Promise<void> {
    await this.kill();
    for (const proxy of Object.values(this.proxies)) proxy.close();
    this.#log.end();
  }

  #send(message: NodeMessage): void {
    if (this.#child?.connected) this.#child.send(message, () => {});
  }

  /** Starts the process. Returns false if it exits before it serves. */
  async #launch(): Promise<boolean> {
    const { checkout, args } = this.program;
    const env = {
      PATH: process.env.PATH,
      NODE_COMPILE_CACHE: COMPILE_CACHE,
      KEYHOLD_PORT: String(this.port),
      KEYHOLD_METRICS_PORT: "off",
      ...WITHOUT_OWN_LIMITS,
      ...this.#options.environment,
    };
    const program = join(checkout, "test/faults/node.ts");
    const child = fork(program, [`--clock=${this.clockOffset}`, ...args], {
      env,
      execArgv: [],
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    this.#child = child;
    this.#usageStoredUntil = performance.now();
    child.on("message", ({ usage }: { readonly usage?: UsageReport }) => usage && this.#noteUsage(usage));
    for (const stream of [child.stdout, child.stderr]) stream?.pipe(this.#log, { end: false });
    const killWithUs = () => child.kill("SIGKILL");
    process.once("exit", killWithUs);
    const ended = once(child, "exit").finally(() => process.off("exit", killWithUs));
    const isServing = await Promise.race([once(child, "message").then(() => true), ended.then(() => false)]);
    if (!isServing) return false;
    this.#noteStart();
    void ended.then(([code, signal]) => this.#noteExit(child, `${signal ?? `exit code ${code}`}`));
    return true;
  }

  #noteUsage({ began, state }: UsageReport): void {
    const now = performance.now();
    if (state === "running" && this.#usageTime !== null && now - this.#usageTime > MAX_USAGE_INTERVAL)
      this.unexpected.push(`${this.name} stored no usage for ${Math.round(now - this.#usageTime)} ms`);
    if (state === "stored") this.#usageStoredUntil = began - monotonicTime() + now;
    this.#usageState = state;
    this.#usageTime = now;
  }

  #noteEnd(isStored: boolean): void {
    this.endedProcesses.push({
      node: this.name,
      storedUntil: isStored ? Number.POSITIVE_INFINITY : this.#usageStoredUntil,
      ended: performance.now(),
      restarted: Number.POSITIVE_INFINITY,
    });
  }

  #noteStart(): void {
    const last = this.endedProcesses.at(-1);
    if (last !== undefined) last.restarted = performance.now();
    this.#usageState = "stored";
    this.#usageTime = performance.now();
  }

  #noteExit(child: ChildProcess, how: string): void {
    if (this.#isWanted && this.#child === child) this.unexpected.push(`${this.name} exited unexpectedly: ${how}`);
  }
}

/** Resolves to the exit code of the process, after all of its messages; null if it was killed. */
async function ended(child: ChildProcess): Promise<number | null> {
  const [[code]] = await Promise.all([once(child, "exit"), child.connected && once(child, "disconnect")]);
  return code;
}
