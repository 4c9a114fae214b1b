import { expect, test } from "vitest";
import { Batcher } from "../../src/lib/batcher.ts";
import { seededBy } from "../support/seeded.ts";

const seeded = seededBy("KEYHOLD_GATHER_SEED");

/** A call that the test resolves. */
interface Held {
  readonly items: readonly number[];
  readonly answer: (results: readonly string[]) => void;
  readonly fail: (error: Error) => void;
}

const shared = new Error("the items fail together");
const result = (item: number) => `result ${item}`;

function holding(maxInFlight: number, maxItems: number) {
  const held: Held[] = [];
  const doMany = (items: readonly number[]) =>
    new Promise<readonly string[]>((answer, fail) => held.push({ items, answer, fail }));
  const concernsAll = (error: unknown) => error === shared;
  return { held, gatherer: new Batcher(doMany, { maxInFlight: maxInFlight, maxItems, concernsAll }) };
}

function take(held: Held[]): Held {
  const [one] = held.splice(0, 1);
  if (one === undefined) throw new Error("no call is in flight");
  return one;
}

const turn = () => new Promise(setImmediate);

test("a lone item is sent at the end of the tick of the event loop", async () => {
  const { held, gatherer } = holding(2, 10);
  void gatherer.do(1);
  await turn();
  expect(held.map(({ items }) => items)).toEqual([[1]]);
  void gatherer.do(2);
  await turn();
  expect(held.map(({ items }) => items)).toEqual([[1], [2]]);
});

test("a call in flight allows only one that is as large as all others together", async () => {
  const { held, gatherer } = holding(3, 10);
  const doAll = async (items: readonly number[]) => {
    for (const item of items) void gatherer.do(item);
    await turn();
  };
  const seen = () => held.map(({ items }) => items);
  await doAll([1, 2]);
  await doAll([3]);
  expect(seen()).toEqual([[1, 2]]);
  await doAll([4]);
  await doAll([5, 6, 7]);
  expect(seen()).toEqual([
    [1, 2],
    [3, 4],
  ]);
  take(held).answer(["result 1", "result 2"]);
  await turn();
  expect(seen()).toEqual([
    [3, 4],
    [5, 6, 7],
  ]);
});

test("items that arrive while enough calls are in flight are sent together, in order, up to the maximum", async () => {
  const { held, gatherer } = holding(1, 4);
  const first = gatherer.do(1);
  await turn();
  const done = Promise.all([first, ...[2, 3, 4, 5, 6, 7].map((item) => gatherer.do(item))]);
  await turn();
  const seen: (readonly number[])[] = [];
  while (held.length > 0) {
    expect(held).toHaveLength(1);
    const { items, answer } = take(held);
    seen.push(items);
    answer(items.map(result));
    await turn();
  }
  expect(seen).toEqual([[1], [2, 3, 4, 5], [6, 7]]);
  expect(await done).toEqual([1, 2, 3, 4, 5, 6, 7].map(result));
});

test("a failed call rejects its own items and no others", async () => {
  const { held, gatherer } = holding(1, 2);
  const done = Promise.allSettled([1, 2, 3, 4, 5].map((item) => gatherer.do(item)));
  await turn();
  take(held).answer([result(1), result(2)]);
  await turn();
  take(held).fail(shared);
  await turn();
  take(held).answer([result(5)]);
  expect(await done).toEqual([
    { status: "fulfilled", value: result(1) },
    { status: "fulfilled", value: result(2) },
    { status: "rejected", reason: shared },
    { status: "rejected", reason: shared },
    { status: "fulfilled", value: result(5) },
  ]);
  expect(held).toEqual([]);
});

test("each invalid item rejects with its own error, and all others are executed once", async () => {
  for (let round = 0; round < 100; round++) {
    const count = 1 + seeded.below(60);
    const bad = new Set(Array.from({ length: seeded.below(6) }, () => seeded.below(count)));
    const [maxInFlight, maxItems] = [1 + seeded.below(3), 1 + seeded.below(30)];
    const times = new Map<number, number>();
    let [inFlight, most] = [0, 0];
    const doMany = async (items: readonly number[]) => {
      expect(items.length).toBeLessThanOrEqual(maxItems);
      most = Math.max(most, ++inFlight);
      await turn();
      inFlight--;
      const first = items.find((item) => bad.has(item));
      if (first !== undefined) throw new Error(`bad ${first}`);
      for (const item of items) times.set(item, (times.get(item) ?? 0) + 1);
      return items.map(result);
    };
    const gatherer = new Batcher(doMany, { maxInFlight: maxInFlight, maxItems, concernsAll: () => false });
    const items = Array.from({ length: count }, (_, item) => item);
    const answers = await Promise.all(items.map((item) => gatherer.do(item).catch((error: Error) => error.message)));
    expect(answers).toEqual(items.map((item) => (bad.has(item) ? `bad ${item}` : result(item))));
    expect([...times]).toHaveLength(count - bad.size);
    expect([...times.values()].filter((one) => one !== 1)).toEqual([]);
    expect(most).toBeLessThanOrEqual(maxInFlight);
  }
});
