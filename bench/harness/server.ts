import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Fixture } from "./fixture.ts";
import type { Cores } from "./pinning.ts";

export interface ServerProcess {
  readonly url: string;
  readonly pid: number;
  /** Stops the server and waits for its exit. */
  stop(): Promise<void>;
}

export interface ServerOptions {
  /** The program with its arguments. */
  readonly command: readonly string[];
  /** In addition to the port, which is passed in `portVariable`. */
  readonly environment: Readonly<Record<string, string>>;
  readonly portVariable: string;
  /** Returns 200 when the server is ready. Null: the server is ready when it accepts connections. */
  readonly readyPath: string | null;
  readonly cores?: Cores;
}

/** Milliseconds. */
const START_TIMEOUT = 60_000;
const POLL_INTERVAL = 2;

const running = new Set<ChildProcess>();

process.once("exit", () => {
  for (const child of running) child.kill("SIGTERM");
});

/** Starts a server and resolves when it is ready. Its stdout is discarded; its stderr is inherited. */
export async function startServer(fixture: Fixture, options: ServerOptions): Promise<ServerProcess> {
  const port = await freePort();
  const [program, ...args] = fixture.pinning.on(options.cores ?? "server", options.command);
  const child = spawn(program, args, {
    env: { PATH: process.env.PATH, ...options.environment, [options.portVariable]: String(port) },
    stdio: ["ignore", "ignore", "inherit"],
  });
  running.add(child);
  const ended = once(child, "exit").finally(() => running.delete(child));
  const stop = async () => {
    child.kill("SIGTERM");
    await ended;
  };
  fixture.onClose(stop);
  const url = `http://127.0.0.1:${port}`;
  const { readyPath } = options;
  const isReady = readyPath === null ? () => accepts(port) : () => answers(url + readyPath);
  await Promise.race([until(isReady), ended.then(() => failed(options.command))]);
  return { url, pid: child.pid ?? 0, stop };
}

function failed(command: readonly string[]): never {
  throw new Error(`${command.join(" ")} exited before it was ready`);
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  const giveUp = performance.now() + START_TIMEOUT;
  while (!(await condition())) {
    if (performance.now() > giveUp) throw new Error(`the server was not ready within ${START_TIMEOUT} ms`);
    await sleep(POLL_INTERVAL);
  }
}

function answers(url: string): Promise<boolean> {
  return fetch(url).then(
    async (response) => {
      await response.arrayBuffer();
      return response.status === 200;
    },
    () => false,
  );
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
