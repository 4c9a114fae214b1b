import { pbkdf2Sync } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { afterEach, expect, test } from "vitest";
import { HashQueue, type HashQueueOptions, type Turn } from "../../../src/hashing/slow/hash-queue.ts";
import { HashWorker } from "../../../src/hashing/slow/hash-worker.ts";
import { LONG, SHORT } from "./samples.ts";

const queues: HashQueue[] = [];

afterEach(async () => {
  await Promise.all(queues.splice(0).map((queue) => queue.close()));
});

function startQueue(options: HashQueueOptions = {}): HashQueue {
  const queue = new HashQueue(options);
  queues.push(queue);
  return queue;
}

const task = (parameters: string) => ({ parameters, message: new TextEncoder().encode("raw key") });
const SHORT_HASH = pbkdf2Sync("raw key", "saltsalt", 1000, 32, "sha256");

/** Computes hashes of one group, unless another is given. */
const compute = (queue: HashQueue, one: ReturnType<typeof task>, turn: Partial<Turn> = {}) =>
  queue.compute(one, { suspicion: 0, group: "one", since: performance.now(), ...turn });

const PROGRAM = new URL("../../../src/hashing/slow/worker.ts", import.meta.url);
const HELD = new URL("./held-worker.ts", import.meta.url);

/** A queue whose threads a test can end. Unless another program is given, `LONG` does not end by itself. */
function startObservedQueue(options: HashQueueOptions = {}, program = HELD) {
  const workers: HashWorker[] = [];
  const startWorker = () => {
    const worker = new HashWorker(program);
    workers.push(worker);
    return worker;
  };
  return { workers, queue: startQueue({ ...options, startWorker }) };
}

test("two hashes are computed at a time, 64 wait, and others are rejected", async () => {
  const { queue, workers } = startObservedQueue();
  expect(workers).toHaveLength(0);
  const accepted = Array.from({ length: 66 }, () => compute(queue, task(LONG)));
  expect([workers.length, queue.running, queue.waiting]).toEqual([2, 2, 64]);
  await expect(compute(queue, task(LONG))).rejects.toMatchObject({
    code: "OVERLOADED",
    message: "too many calls are waiting for slow hashes of imported keys; retry after 1 s",
  });
  const ends = Promise.allSettled(accepted);
  await queue.close();
  expect((await ends).filter(({ status }) => status === "fulfilled")).toEqual([]);
});

test("the least suspect is computed first, and the most suspect have the least room", async () => {
  const { queue } = startObservedQueue({ now: () => 0 });
  // Keeps one of the two threads: the other one computes one hash after the other.
  const running = [compute(queue, task(LONG))];
  const order: string[] = [];
  const add = (suspicion: Turn["suspicion"], group = `${suspicion}`) =>
    compute(queue, task(SHORT), { suspicion, group }).then(() => order.push(group));
  const others = ([2, 1, 0] as const).flatMap((suspicion) => [add(suspicion), add(suspicion), add(suspicion)]);
  await Promise.all(others);
  expect(order.join("")).toBe("200011122");
  running.push(compute(queue, task(LONG)));
  const ends = Promise.allSettled(running);
  const room = ([0, 1, 2] as const).map((suspicion) => {
    const before = queue.waiting;
    for (let count = 0; count < 100; count++) compute(queue, task(LONG), { suspicion }).catch(() => undefined);
    return queue.waiting - before;
  });
  expect(room).toEqual([64, 64, 16]);
  await queue.close();
  await ends;
});

test("the first come is served first, by threads that are kept", async () => {
  const { queue, workers } = startObservedQueue();
  const [one, other, third, fourth] = [LONG, LONG, LONG, LONG].map(task);
  const ends = Promise.allSettled([one, other, third, fourth].map((each) => each && compute(queue, each)));
  await workers[0]?.terminate();
  // What is computed was moved to its thread.
  expect([one, other, third, fourth].map((each) => each?.message.byteLength)).toEqual([0, 0, 0, 7]);
  await queue.close();
  await ends;
});

test("what has waited for more than ten seconds is rejected instead of computed", async () => {
  let now = 0;
  const { queue } = startObservedQueue({ now: () => now });
  const [first, second, stale] = [SHORT, SHORT, SHORT].map((parameters) => compute(queue, task(parameters)));
  now = 5_000;
  const fresh = compute(queue, task(SHORT));
  now = 10_001;
  await expect(stale).rejects.toMatchObject({ code: "OVERLOADED" });
  await expect(Promise.all([first, second, fresh])).resolves.toHaveLength(3);
});

test("a full queue has room for other groups, and serves them in turn", async () => {
  const { queue, workers } = startObservedQueue();
  const flood = Array.from({ length: 66 }, () => task(LONG));
  const [last] = flood.slice(-1).map(({ message }) => message);
  const ends = flood.map((one) => compute(queue, one, { group: "flood" }));
  const [other, another] = [task(SHORT), task(SHORT)];
  const results = Promise.all([
    compute(queue, other, { group: "other" }),
    compute(queue, another, { group: "another" }),
  ]);
  expect(queue.waiting).toBe(64);
  for (const removed of ends.slice(-2)) await expect(removed).rejects.toMatchObject({ code: "OVERLOADED" });
  expect(last?.every((byte) => byte === 0)).toBe(true);
  // Those of the flood that are computed are ended instead of awaited.
  const settled = Promise.allSettled(ends);
  for (const worker of workers.slice()) await worker.terminate();
  await workers[2]?.terminate();
  expect(await results).toHaveLength(2);
  await queue.close();
  expect((await settled).filter(({ status }) => status === "fulfilled")).toEqual([]);
});

test("the message is moved to the thread, and no copy remains", async () => {
  const queue = startQueue();
  const moved = task(SHORT);
  const result = compute(queue, moved);
  expect(moved.message.byteLength).toBe(0);
  expect(await result).toEqual(new Uint8Array(SHORT_HASH));
});

test.each([SHORT, SHORT.replace("1000", "600001")])("a thread zeroes the message of %s", async (parameters) => {
  const thread = new Worker(PROGRAM, { env: {} });
  // Shared, so that the test sees what the thread does with it.
  const message = new Uint8Array(new SharedArrayBuffer(7)).fill(1);
  const answered = once(thread, "message");
  thread.postMessage({ parameters, message });
  await answered;
  expect([...message]).toEqual([0, 0, 0, 0, 0, 0, 0]);
  await thread.terminate();
});

test("a thread that is ended fails its hash alone, and is replaced", async () => {
  const { queue, workers } = startObservedQueue();
  const [first, second, third] = [LONG, SHORT, SHORT].map((parameters) => compute(queue, task(parameters)));
  const failure = expect(first).rejects.toThrow("a hashing thread was stopped");
  await workers[0]?.terminate();
  await failure;
  expect(await Promise.all([second, third])).toHaveLength(2);
  await Promise.all([SHORT, SHORT].map((parameters) => compute(queue, task(parameters))));
  expect(workers).toHaveLength(3);
});

test("a thread that crashes fails its hash alone, and is replaced", async () => {
  const { queue, workers } = startObservedQueue({}, PROGRAM);
  const message = { buffer: new ArrayBuffer(1) } as Uint8Array<ArrayBuffer>;
  await expect(compute(queue, { parameters: SHORT, message })).rejects.toThrow(/^a hashing thread (?:failed|exited)$/);
  expect(await compute(queue, task(SHORT))).toEqual(new Uint8Array(SHORT_HASH));
  expect(workers).toHaveLength(2);
});

test("a thread has no environment, which may contain the root secret, and its end is noticed", async () => {
  const worker = new HashWorker(new URL("./environment.ts", import.meta.url));
  expect(Buffer.from(await worker.compute(task(SHORT))).toString()).toBe("{}");
  await expect(worker.compute(task(SHORT))).rejects.toThrow("a hashing thread exited");
  expect(worker.isAlive).toBe(false);
  await expect(worker.compute(task(SHORT))).rejects.toThrow("a hashing thread exited");
});

test("a thread computes no hash beyond the limits, and survives it", async () => {
  const { queue, workers } = startObservedQueue({}, PROGRAM);
  await expect(compute(queue, task(SHORT.replace("1000", "600001")))).rejects.toThrow(
    "i (iterations) is 600001; it must be 1000 to 600000",
  );
  expect(await compute(queue, task(SHORT))).toEqual(new Uint8Array(SHORT_HASH));
  expect(workers).toHaveLength(1);
});

test("an idle thread ends, and another starts when it is needed", async () => {
  const { queue, workers } = startObservedQueue({ idleTimeout: 1 });
  await compute(queue, task(SHORT));
  await expect.poll(() => workers[0]?.isAlive).toBe(false);
  expect(await compute(queue, task(SHORT))).toEqual(new Uint8Array(SHORT_HASH));
  expect(workers).toHaveLength(2);
});

test("closing rejects what waits and what is computed, and ends the threads", async () => {
  const { queue, workers } = startObservedQueue();
  const waiting = task(LONG);
  const ends = Promise.allSettled([compute(queue, task(LONG)), compute(queue, task(LONG)), compute(queue, waiting)]);
  await queue.close();
  const stopping = {
    status: "rejected",
    reason: { code: "OVERLOADED", message: "the server is stopping; retry after 1 s" },
  };
  expect(await ends).toMatchObject([stopping, stopping, stopping]);
  expect(waiting.message.every((byte) => byte === 0)).toBe(true);
  expect(workers.map(({ isAlive }) => isAlive)).toEqual([false, false]);
  await expect(compute(queue, task(SHORT))).rejects.toMatchObject({ code: "OVERLOADED" });
});

/** Returns the nice values and the scheduling policies of the threads of this process, by thread id (proc_pid_stat(5)). */
function priorities(): Map<string, { readonly nice: number; readonly policy: number }> {
  const folder = `/proc/${process.pid}/task`;
  const priorityOf = (id: string) => {
    const fields = readFileSync(`${folder}/${id}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
    return { nice: Number(fields[16]), policy: Number(fields[38]) };
  };
  return new Map(readdirSync(folder).map((id) => [id, priorityOf(id)]));
}

const SCHED_IDLE = 5;
const hasChrt = ["/usr/bin/chrt", "/bin/chrt"].some(existsSync);

test.runIf(process.platform === "linux")("only the threads for slow hashes have the lowest priority", async () => {
  const before = priorities();
  const queue = startQueue();
  await Promise.all([compute(queue, task(SHORT)), compute(queue, task(SHORT))]);
  const lowered = () => [...priorities()].filter(([id, { nice }]) => nice === 19 && before.get(id)?.nice !== 19);
  expect(lowered()).toHaveLength(2);
  // Another process lowers the policy.
  const policies = () => lowered().map(([, { policy }]) => policy);
  if (hasChrt) await expect.poll(policies).toEqual([SCHED_IDLE, SCHED_IDLE]);
  expect(priorities().get(String(process.pid))).toEqual(before.get(String(process.pid)));
});
