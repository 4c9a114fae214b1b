import { expect, test } from "vitest";
import { type Running, supervise } from "../../src/lib/supervise.ts";

/** A server that ends by `stop` or `crash`, and fails on request. */
function fakeServer(pid: number): Running & { fail(): void; crash(): void; stopped: boolean } {
  const { promise, resolve } = Promise.withResolvers<string>();
  const failure = Promise.withResolvers<string>();
  return {
    pid,
    exited: promise,
    failed: failure.promise,
    stopped: false,
    fail: () => failure.resolve("uncaught exception"),
    crash: () => resolve("signal SIGKILL"),
    async stop() {
      this.stopped = true;
      resolve("exit code 0");
    },
  };
}

test("a server that restarts just after stop is stopped too", async () => {
  const [first, second] = [fakeServer(1), fakeServer(2)];
  const restarting = Promise.withResolvers<void>();
  const restarted = Promise.withResolvers<Running>();
  const starts = [
    () => Promise.resolve(first),
    () => {
      restarting.resolve();
      return restarted.promise;
    },
  ];
  const server = await supervise(
    "PostgreSQL",
    async () => starts.shift()?.() ?? Promise.reject(new Error("one start too many")),
    () => {},
  );
  first.crash();
  await restarting.promise;
  const stopped = server.stop();
  restarted.resolve(second);
  await stopped;
  expect(second.stopped).toBe(true);
  expect(starts).toEqual([]);
});

test("retries until the start succeeds, and logs every failure", async () => {
  const [first, last] = [fakeServer(1), fakeServer(4)];
  const lines: string[] = [];
  const back = Promise.withResolvers<void>();
  const outcomes = [first, new Error("disk full"), new Error("disk still full"), last];
  const start = async () => {
    const outcome = outcomes.shift();
    if (outcome === undefined || outcome instanceof Error) throw outcome;
    return outcome;
  };
  const server = await supervise("PostgreSQL", start, (level, line) => {
    lines.push(`${level} ${line}`);
    if (level === "info") back.resolve();
  });
  first.crash();
  await back.promise;
  expect(server.pid).toBe(4);
  expect(lines).toEqual([
    "error PostgreSQL exited unexpectedly: signal SIGKILL; restarting",
    "error Error: disk full",
    "error Error: disk still full",
    "info PostgreSQL is accepting connections again (pid 4)",
  ]);
  await server.stop();
  expect(last.stopped).toBe(true);
});

test("a failed server is replaced while it still runs; at most one overlaps its successor", async () => {
  const servers = [fakeServer(1), fakeServer(2), fakeServer(3)] as const;
  const starts = [...servers];
  const lines: string[] = [];
  const serving = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const replaced = serving.values();
  const server = await supervise(
    "worker",
    async () => starts.shift() ?? Promise.reject(new Error("one start too many")),
    (level, line) => {
      lines.push(line);
      if (level === "info") replaced.next().value?.resolve();
    },
  );
  servers[0].fail();
  await serving[0].promise;
  expect(server.pid).toBe(2);
  servers[1].fail();
  await servers[1].failed;
  await new Promise(setImmediate);
  expect(starts).toEqual([servers[2]]);
  servers[0].crash();
  await serving[1].promise;
  expect(server.pid).toBe(3);
  expect(lines).toEqual([
    "worker failed: uncaught exception; starting a replacement",
    "worker is accepting connections again (pid 2)",
    "worker failed: uncaught exception; starting a replacement",
    "worker is accepting connections again (pid 3)",
  ]);
  await server.stop();
});

test("a stop between two attempts ends the retries", async () => {
  const first = fakeServer(1);
  const failed = Promise.withResolvers<void>();
  const outcomes = [first, new Error("disk full")];
  const start = async () => {
    const outcome = outcomes.shift();
    if (outcome === undefined || outcome instanceof Error) throw outcome;
    return outcome;
  };
  const server = await supervise(
    "PostgreSQL",
    start,
    (_, line) => void (line.includes("disk full") && failed.resolve()),
  );
  first.crash();
  await failed.promise;
  await server.stop();
  expect(outcomes).toEqual([]);
});

test("the first start's failure rejects", async () => {
  await expect(
    supervise(
      "PostgreSQL",
      () => Promise.reject(new Error("no space")),
      () => {},
    ),
  ).rejects.toThrow("no space");
});
