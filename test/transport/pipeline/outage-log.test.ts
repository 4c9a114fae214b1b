import { pino } from "pino";
import { expect, onTestFinished, test, vi } from "vitest";
import { createOutageLog } from "../../../src/transport/pipeline/outage-log.ts";

test("an outage is over after an interval without a failed call, and the next one logs its cause", () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const lines: object[] = [];
  const logger = pino({ base: null, timestamp: false }, { write: (line) => void lines.push(JSON.parse(line)) });
  const log = createOutageLog(logger);
  const fail = (reqId: string) => log.add(new Error("unreachable"), () => ({ reqId }));
  for (const reqId of ["a", "b", "c"]) fail(reqId);
  vi.advanceTimersByTime(5_000);
  fail("d");
  vi.advanceTimersByTime(15_000);
  fail("e");
  expect(lines).toMatchObject([
    { reqId: "a", msg: "fault" },
    { failed_calls: 2 },
    { failed_calls: 1 },
    { reqId: "e", msg: "fault" },
  ]);
  expect(vi.getTimerCount()).toBe(1);
});
