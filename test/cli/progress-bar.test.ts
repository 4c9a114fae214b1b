import { expect, test, vi } from "vitest";
import { createProgressBar } from "../../src/cli/progress-bar.ts";

/** A stream that keeps what is written. */
function streamOf(isTTY: boolean) {
  const written: string[] = [];
  const write = (text: string) => written.push(text) > 0;
  return { written, stream: { isTTY, write } as unknown as NodeJS.WriteStream };
}

/** Calls with the function that sets the seconds since the beginning. */
function atSeconds(work: (at: (seconds: number) => void) => void): void {
  const clock = vi.spyOn(performance, "now").mockReturnValue(0);
  try {
    work((seconds) => clock.mockReturnValue(seconds * 1000));
  } finally {
    clock.mockRestore();
  }
}

test("a terminal shows the number, the rate, the part and the time left, without what was done before", () => {
  const { stream, written } = streamOf(true);
  atSeconds((at) => {
    const bar = createProgressBar(stream, "keys", { items: 1_000, done: 1_000 });
    at(10);
    bar.show({ items: 3_000, done: 3_000, total: 100_000, failed: 0 });
    at(10.1);
    bar.show({ items: 3_001, done: 3_001, total: 100_000, failed: 0 });
    at(100);
    bar.show({ items: 51_000, done: 51_000, total: 100_000, failed: 2 });
  });
  expect(written).toEqual([
    "\r\x1b[K3,000 keys  200/s  3.0%  8:05 left",
    "\r\x1b[K51,000 keys  500/s  51.0%  1:38 left  2 failed",
  ]);
});

test("a log has a line every ten seconds", () => {
  const { stream, written } = streamOf(false);
  atSeconds((at) => {
    const bar = createProgressBar(stream, "keys", { items: 0, done: 0 });
    for (const seconds of [1, 9.9, 10, 15, 20]) {
      at(seconds);
      bar.show({ items: 100 * seconds, done: 100 * seconds, total: 1_000_000, failed: 0 });
    }
  });
  expect(written).toEqual(["1,000 keys  100/s  0.1%  2:46:30 left\n", "2,000 keys  100/s  0.2%  2:46:20 left\n"]);
});

test("without a total there is no time left, and without progress it is unknown", () => {
  const { stream, written } = streamOf(true);
  atSeconds((at) => {
    const bars = [1, 2].map(() => createProgressBar(stream, "rows", { items: 0, done: 0 }));
    at(1);
    bars[0]?.show({ items: 5, done: 50, total: 0, failed: 0 });
    bars[1]?.show({ items: 0, done: 0, total: 10, failed: 0 });
  });
  expect(written).toEqual(["\r\x1b[K5 rows  5/s", "\r\x1b[K0 rows  0/s  0.0%  -:-- left"]);
});

test("without a start, the rates count from the first progress", () => {
  const { stream, written } = streamOf(true);
  atSeconds((at) => {
    const bar = createProgressBar(stream, "keys");
    at(5);
    bar.show({ items: 1_000, done: 1_000, total: 3_000, failed: 0 });
    at(15);
    bar.show({ items: 2_000, done: 2_000, total: 3_000, failed: 0 });
  });
  expect(written).toEqual(["\r\x1b[K2,000 keys  100/s  66.7%  0:10 left"]);
});
