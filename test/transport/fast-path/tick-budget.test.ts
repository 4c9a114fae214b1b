import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { TickBudget } from "../../../src/transport/fast-path/tick-budget.ts";

test("what one turn of the event loop begins is bounded, and the rest follows in the order in which it came", async () => {
  const begun: number[] = [];
  const turns = new TickBudget<number>((work) => begun.push(work), 10);
  for (let work = 0; work < 25; work++) turns.enter(work);
  expect(begun).toHaveLength(10);
  await nextTurn();
  expect(begun).toHaveLength(20);
  turns.enter(25);
  expect(begun).toHaveLength(20);
  await nextTurn();
  expect(begun).toEqual(Array.from({ length: 26 }, (_, work) => work));
  await nextTurn();
  turns.enter(26);
  expect(begun).toHaveLength(27);
});

test("work that begets work does not keep timers waiting", async () => {
  let [begun, over] = [0, false];
  const turns: TickBudget<null> = new TickBudget(() => {
    begun++;
    // As a client that sends its next request as soon as it is answered.
    if (!over) turns.enter(null);
  }, 10);
  const timer = new Promise((resolve) => setTimeout(resolve, 1));
  turns.enter(null);
  await timer;
  // The timer may have come in the first turn already, on a slow machine: the work still goes on.
  await nextTurn();
  over = true;
  expect(begun).toBeGreaterThan(10);
});
