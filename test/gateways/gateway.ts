import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { openSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../support/free-port.ts";
import { hasEnded, stop } from "../support/programs/child.ts";
import type { Fields } from "./situations.ts";

/** What the shipped files leave to their user. */
export interface GatewaySettings {
  /** An empty folder for what the program writes. */
  readonly folder: string;
  readonly port: number;
  /** `host:port` of the application. */
  readonly application: string;
  /** `host:port` of two Keyhold servers. */
  readonly keyhold: readonly [string, string];
  /** The token with which the gateway calls Keyhold. */
  readonly token: string;
  /** Replacements of texts in its file; by default none. */
  readonly edits?: Readonly<Record<string, string>>;
}

/** An edit of its file that docs/gateways.md describes, by name, with the situations that it allows. */
export interface Edit {
  readonly name: string;
  readonly edits: Readonly<Record<string, string>>;
  readonly allows: RegExp;
}

export interface Command {
  readonly program: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** A URL that has status 200 once the program has read its file, where it listens before. */
  readonly readyUrl?: string;
}

/** Where a proxy differs from Keyhold's answer. docs/gateways.md names each of these limits. */
export interface Limits {
  /** Statuses for the client where no server answers. */
  readonly unreachable: readonly number[];
  /** Status for the client where Keyhold answers another one than 400, 401, 403 and 503; by default the same. */
  readonly unexpected?: number;
  /** Statuses of Keyhold whose headers and body do not reach the client. */
  readonly withoutHeaders?: readonly number[];
  /** Status for the client where Keyhold's is this one; by default the same. */
  readonly statusOf?: Readonly<Record<number, number>>;
  /** Status for the client in one situation, by its name, where it differs. */
  readonly situations?: Readonly<Record<string, number>>;
  /** Status for a client that sends a header of the form of Keyhold's, where they are not removed. */
  readonly refusesSpoofed?: number;
  /** Whether it passes a request with these fields, without what they say of other headers, and does not refuse it; by default never. */
  readonly ignoresHops?: (fields: Fields) => boolean;
  /** Status for a client whose key has scopes of 25 KB, where the gateway itself refuses them. */
  readonly longIdentity?: number;
  /** Whether a request is refused, and not asked again at the other server, when a server has received it and does not answer. */
  readonly asksOnce?: boolean;
  /** Whether the client receives the `RateLimit` fields of an accepted request; by default not. */
  readonly passesLimits?: boolean;
  /** Whether the client receives the body of Keyhold's errors. */
  readonly passesBody: boolean;
  /** Whether a header such as `X-Keyhold-Future`, which its configuration does not name, reaches the application. */
  readonly passesUnlisted: boolean;
}

/** A program in front of the application, configured by its files in deploy/gateways/. */
export interface GatewayKind {
  readonly name: string;
  /** Files that its user copies, from the root of the project. */
  readonly files: readonly string[];
  /** Whether its port of the tests, which is without TLS, serves HTTP/2 with prior knowledge too. */
  readonly servesHttp2: boolean;
  readonly limits: Limits;
  readonly edited: readonly Edit[];
  /** What it asks about a request to `/orders?a=b`, where that is not the URL with a query. */
  readonly asks?: string;
  /** Writes its configuration, and returns how to run it in the foreground. */
  configure(settings: GatewaySettings): Promise<Command>;
}

export interface Gateway {
  readonly url: string;
  /** Its complete output. */
  log(): string;
  stop(): Promise<void>;
}

/** Returns the command with which the command is run, such as one that selects the processor. */
export type Launch = (command: readonly string[]) => readonly [string, ...string[]];

/** Starts the program with its files and resolves when it accepts connections. Rejects with its output if it exits before. */
export async function startGateway(
  kind: Pick<GatewayKind, "name" | "configure">,
  parent: string,
  settings: Omit<GatewaySettings, "folder" | "port">,
  launch: Launch = ([program = "", ...args]) => [program, ...args],
): Promise<Gateway> {
  await mkdir(parent, { recursive: true });
  const folder = await mkdtemp(join(parent, `${kind.name.replaceAll(" ", "-")}-`));
  const port = await freePort();
  const { env = {}, readyUrl, ...command } = await kind.configure({ ...settings, folder, port });
  const [program, ...args] = launch([command.program, ...command.args]);
  // A file, since nginx and Apache cannot open /dev/stderr when that is one of Node's pipes.
  const logFile = join(folder, "output.log");
  const output = openSync(logFile, "a");
  const child = spawn(program, args, {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ["ignore", output, output],
  });
  const log = () => readFileSync(logFile, "utf8");
  await Promise.race([untilListening(port, child), failureOf(child, log)]);
  if (readyUrl !== undefined) await Promise.race([untilReady(readyUrl, child), failureOf(child, log)]);
  return { url: `http://127.0.0.1:${port}`, log, stop: () => stop(child) };
}

async function untilReady(url: string, child: ChildProcess): Promise<void> {
  const isReady = async () => (await fetch(url).catch(() => undefined))?.status === 200;
  while (!hasEnded(child) && !(await isReady())) await sleep(20);
}

async function failureOf(child: ChildProcess, log: () => string): Promise<never> {
  const [reason] = await Promise.race([once(child, "exit"), once(child, "error")]);
  throw new Error(`${child.spawnfile} exited (${reason}):\n${log()}`);
}

async function untilListening(port: number, child: ChildProcess): Promise<void> {
  while (!hasEnded(child)) {
    const socket = connect(port, "127.0.0.1");
    const isOpen = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (isOpen) return;
    await sleep(20);
  }
}

/** Returns the edits of what the file requires: of no scope, and of an audience too. */
export function editedQuery(required = "?required_scopes=read", none = "?", audience = "&audience=billing"): Edit[] {
  return [
    { name: "without a scope", edits: { [required]: none }, allows: /^missing scope/ },
    { name: "with an audience", edits: { [required]: required + audience }, allows: /^a token for/ },
  ];
}

/** Replaces every occurrence of each text. Throws if a file does not contain one, so that the tests run what is shipped. */
export function substitute(text: string, replacements: Readonly<Record<string, string>>): string {
  return Object.entries(replacements).reduce((current, [before, after]) => {
    if (!current.includes(before)) throw new Error(`the file does not contain ${before}`);
    return current.replaceAll(before, after);
  }, text);
}
