import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, request } from "node:http";
import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { buffer } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { listenLocally } from "../../support/listen.ts";
import { issue, type Json } from "../../support/rest.ts";
import { TcpProxy } from "../../support/tcp-proxy.ts";
import { useKeysCommand } from "../keys/keys-command.ts";

const command = useKeysCommand();
const { suite, keyhold, rest } = command;

const MAIN = resolve(import.meta.dirname, "../../../src/cli/keyhold.js");

interface Watching {
  readonly lines: readonly string[];
  /** Resolves when there are so many lines. */
  printed(count: number): Promise<void>;
  /** Resolves when this was written to stderr. */
  noted(text: RegExp): Promise<void>;
  /** Interrupts the command, and returns its exit status and what it wrote to stderr. */
  interrupt(): Promise<readonly [code: number, stderr: string]>;
  /** Resolves when it exits. */
  readonly ended: Promise<readonly [code: number, stderr: string]>;
}

function watch(url: string, ...args: string[]): Watching {
  const env = { KEYHOLD_URL: url, KEYHOLD_TOKEN: command.token };
  const child = spawn(process.execPath, [MAIN, "audit", "watch", ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on("line", (line) => lines.push(line));
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (part) => {
    stderr += part;
  });
  const ended = once(child, "close").then(([code]) => [code, stderr] as const);
  return {
    lines,
    printed: (count) => expect.poll(() => lines.length).toBeGreaterThanOrEqual(count),
    noted: (text) => expect.poll(() => stderr).toMatch(text),
    interrupt: () => {
      child.kill("SIGINT");
      return ended;
    },
    ended,
  };
}

async function proxyOf(): Promise<TcpProxy> {
  const proxy = await TcpProxy.start(suite.server.url);
  onTestFinished(() => proxy.close());
  return proxy;
}

const urlOf = (proxy: TcpProxy) => proxy.url.replace(/\/$/, "");

/** Returns the position of the next event. */
async function nextSeq(): Promise<number> {
  const { body } = await rest()("GET", "/v2alpha1/admin/auditEvents?page_size=1&order_by=seq+desc");
  return Number(body.audit_events[0].seq) + 1;
}

const seqsOf = (lines: readonly string[]): number[] => lines.map((line) => Number(JSON.parse(line).seq));

test("events are printed once and in order, also after lost connections; a resume token continues behind the last one", async () => {
  const [proxy, first] = [await proxyOf(), await nextSeq()];
  const watching = watch(urlOf(proxy), "--from-seq", String(first));
  await issue(rest());
  // The titles are a line too.
  await watching.printed(2);
  await proxy.down();
  await watching.noted(/ is unreachable: .*; retrying\n/);
  await issue(rest());
  await proxy.up();
  await issue(rest());
  await watching.printed(4);
  proxy.cut("fin");
  await issue(rest());
  await watching.printed(5);
  const [code, stderr] = await watching.interrupt();
  expect(code).toBe(130);
  const [titles, ...rows] = watching.lines;
  expect(titles).toMatch(/^SEQ +TIME +ACTION +KEY OR RESOURCE +/);
  expect(rows.map((row) => Number(row.split(" ")[0]))).toEqual([0, 1, 2, 3].map((n) => first + n));
  const listed = await keyhold(["audit", "list", "--filter", `seq>=${first}`, "--order-by", "seq"]);
  expect(watching.lines).toEqual(listed.stdout.trimEnd().split("\n"));

  const [, token = ""] = /^to continue, repeat the command with --resume-token (\S+)$/m.exec(stderr) ?? [];
  await issue(rest());
  const resumed = watch(suite.server.url, "--resume-token", token, "--json");
  await resumed.printed(1);
  expect(seqsOf(resumed.lines)).toEqual([first + 4]);
  expect(await resumed.interrupt()).toEqual([130, ""]);
});

/** Starts a proxy that loses the first call of WatchAuditEvents, after it has run `meanwhile`. Returns its URL. */
async function losingProxy(meanwhile: () => Promise<unknown>): Promise<string> {
  let isLost = false;
  const proxy = createServer(async ({ url = "", method, headers, socket }, response) => {
    const body = await buffer(response.req);
    if (url.endsWith("/WatchAuditEvents") && !isLost) {
      isLost = true;
      await meanwhile();
      return socket.destroy();
    }
    return request(`${suite.server.url}${url}`, { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(response);
    }).end(body);
  });
  onTestFinished(() => void proxy.close().closeAllConnections());
  return `http://127.0.0.1:${await listenLocally(proxy)}`;
}

test("watching begins with the next event, also if the first connection is lost", async () => {
  const record = async () => {
    await issue(rest(), { actor_id: "other" });
    await issue(rest(), { actor_id: "watched" });
  };
  const watching = watch(await losingProxy(record), "--json", "--actor", "watched", "--action", "key.*");
  await watching.printed(1);
  await record();
  await watching.printed(2);
  const events = watching.lines.map((line) => JSON.parse(line));
  expect(events).toMatchObject([1, 2].map(() => ({ action: "key.issued", actor_id: "watched" })));
  expect(await watching.interrupt()).toEqual([130, ""]);
});

test("a watch ends with its error when the server stays unreachable", async () => {
  const [proxy, first] = [await proxyOf(), await nextSeq()];
  const watching = watch(urlOf(proxy), "--from-seq", String(first), "--retry-for", "1s");
  await issue(rest());
  await watching.printed(2);
  await proxy.down();
  const [code, stderr] = await watching.ended;
  expect(code).toBe(6);
  expect(stderr).toMatch(
    /^to continue, repeat the command with --resume-token \S+\nkeyhold: \S+ is unreachable: .*\n$/m,
  );
});

test.for([
  ["an unreachable server", 6, ["--url", "http://127.0.0.1:1"], "UNAVAILABLE"],
  ["an invalid filter", 2, ["--filter", "actr_id=a"], "INVALID_ARGUMENT"],
  ["a position that the log has not reached", 2, ["--from-seq", "999999999"], "OUT_OF_RANGE"],
  ["an invalid duration", 2, ["--retry-for", "long"], "INVALID_ARGUMENT"],
] as const)("%s has exit status %i", async ([, code, args, status]) => {
  const ended = await keyhold(["audit", "watch", ...args, "--json"]);
  expect({ ...ended, stderr: "" }).toMatchObject({ code, stdout: "" });
  expect((JSON.parse(ended.stderr) as Json).error.status).toBe(status);
});
