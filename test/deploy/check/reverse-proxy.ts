import { type ChildProcess, spawn } from "node:child_process";
import { openSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../support/free-port.ts";
import type { Serving } from "../../support/keyhold.ts";
import { hasEnded, stop } from "../../support/programs/child.ts";
import { nginx, read, root } from "../files.ts";
import { type Program, pathOf } from "./tools.ts";

/** A proxy in front of three servers, configured by its file in deploy/. */
export interface ReverseProxy {
  /** URL with TLS, for `localhost`. */
  readonly url: string;
  /** Its complete log. */
  log(): string;
  stop(): Promise<void>;
}

interface Kind {
  readonly program: Program;
  /** Writes its configuration into a folder. */
  configure(folder: string, settings: ProxySettings): Promise<void>;
  readonly run: (folder: string) => readonly string[];
}

/** Values that a file of deploy/ leaves to its user: names of servers, certificates and ports. */
interface ProxySettings {
  readonly port: number;
  readonly adminPort: number;
  /** `host:port` of each server. */
  readonly addresses: readonly string[];
}

const TLS = join(root, "test/support/tls");

function applySettings(text: string, { port, adminPort, addresses }: ProxySettings): string {
  const withPorts = text
    .replace("listen 8443", `listen 127.0.0.1:${port}`)
    .replace("port_value: 8443", `port_value: ${port}`);
  const withTls = withPorts
    .replace("/run/secrets/tls.crt", join(TLS, "localhost.cert.pem"))
    .replace("/run/secrets/tls.key", join(TLS, "localhost.key.pem"))
    .replace("port_value: 9901", `port_value: ${adminPort}`);
  return addresses.reduce((current, address, place) => {
    const [host = "", number = ""] = address.split(":");
    const name = `keyhold-${place + 1}`;
    return current
      .replaceAll(`${name}:4420`, address)
      .replace(`address: ${name}, port_value: 4420`, `address: ${host}, port_value: ${number}`);
  }, withTls);
}

export const KINDS: Readonly<Record<"nginx" | "Envoy", Kind>> = {
  nginx: {
    program: "nginx",
    configure: async (folder, settings) => {
      await writeFile(join(folder, "keyhold.conf"), applySettings(nginx, settings));
      // As root its workers would run as `nobody`, who cannot write here.
      const user = process.getuid?.() === 0 ? "user root;" : "";
      await writeFile(
        join(folder, "nginx.conf"),
        `${user} daemon off; error_log stderr; pid nginx.pid; events {} http { include keyhold.conf; }`,
      );
    },
    run: (folder) => ["-p", folder, "-c", "nginx.conf"],
  },
  Envoy: {
    program: "envoy",
    configure: (folder, settings) =>
      writeFile(join(folder, "envoy.yaml"), applySettings(read("deploy/envoy/envoy.yaml"), settings)),
    run: (folder) => ["-c", join(folder, "envoy.yaml"), "--disable-hot-restart", "--concurrency", "2", "-l", "error"],
  },
};

/** Starts the program, which validates its file, and resolves when the servers answer through it. */
export async function startReverseProxy(
  name: keyof typeof KINDS,
  folder: string,
  servers: readonly Serving[],
): Promise<ReverseProxy> {
  const { program, configure, run } = KINDS[name];
  await mkdir(folder, { recursive: true });
  const port = await freePort();
  const addresses = servers.map(({ url }) => new URL(url).host);
  await configure(folder, { port, adminPort: await freePort(), addresses });
  // A file, since nginx cannot open /dev/stdout when that is one of Node's pipes.
  const logFile = join(folder, "log");
  const output = openSync(logFile, "a");
  const child = spawn(pathOf(program), run(folder), { cwd: folder, stdio: ["ignore", output, output] });
  const log = () => readFileSync(logFile, "utf8");
  const url = `https://localhost:${port}`;
  await untilReady(url, child, log);
  return { url, log, stop: () => stop(child) };
}

async function untilReady(url: string, child: ChildProcess, log: () => string): Promise<void> {
  const isReady = () =>
    fetch(`${url}/health/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isReady())) {
    if (hasEnded(child)) throw new Error(log());
    await sleep(50);
  }
}
