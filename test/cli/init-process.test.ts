import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { childrenOf } from "../support/keyhold.ts";
import { listenLocally } from "../support/listen.ts";
import { ROOT_SECRET } from "../support/server.ts";

const MAIN = resolve(import.meta.dirname, "../../src/cli/keyhold.js");

/** Runs it as process 1 of its own namespace, like a container engine. */
function serveAsInit(databaseUrl: string) {
  const env = {
    PATH: process.env.PATH,
    KEYHOLD_PORT: "0",
    KEYHOLD_DATABASE_URL: databaseUrl,
    KEYHOLD_ROOT_SECRET: ROOT_SECRET,
  };
  const unshare = ["--user", "--map-root-user", "--pid", "--fork", "--kill-child"];
  return spawn("unshare", [...unshare, process.execPath, MAIN, "serve"], {
    env,
    stdio: ["ignore", "ignore", "inherit"],
  });
}

test("as PID 1 a server that waits for its database exits on SIGTERM", async () => {
  const unresponsive = createServer();
  const connected = once(unresponsive, "connection");
  const outer = serveAsInit(`postgres://a:b@127.0.0.1:${await listenLocally(unresponsive)}/c`);
  const exited = once(outer, "exit");
  await connected;
  const [server = 0] = await childrenOf(outer.pid ?? 0, "keyhold.js");
  process.kill(server, "SIGTERM");
  expect(await exited).toEqual([143, null]);
  unresponsive.close();
});
