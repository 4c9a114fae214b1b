import { Writable } from "node:stream";
import { pino } from "pino";
import { expect, test } from "vitest";
import { createAccessLogWriter } from "../../src/transport/access-log-format.ts";

/** What is written, line by line. */
function collector() {
  const lines: string[] = [];
  const stream = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk));
      done();
    },
  });
  return { lines, stream };
}

const withoutTime = (line: string | undefined) => line?.replace(/"time":\d+/, '"time":0');

const FACTS = {
  reqId: "a-1",
  method: "POST",
  status: 200,
  rpc: "keyhold.v2alpha1.ApiKeysService/VerifyApiKey",
  caller: 'oidc:"\\\u2028\n\u0000é\ud83d\ude00',
  duration_ms: 0.1,
};

test("a line is the one that pino writes", () => {
  const { lines, stream } = collector();
  const logger = pino({ level: "info", base: { pid: 1, hostname: "h", from: "a child" } }, stream);
  const write = createAccessLogWriter(logger);
  const { reqId, ...others } = FACTS;
  logger.info(FACTS, "request");
  write([FACTS]);
  write([{ reqId }, Object.freeze(others)]);
  write([{ reqId }, {}, Object.freeze(others)]);
  expect(lines).toHaveLength(4);
  expect(new Set(lines.map(withoutTime)).size).toBe(1);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ ...FACTS, level: 30, msg: "request", from: "a child" });
});

test("nothing is written below the level, which may change", () => {
  const { lines, stream } = collector();
  const logger = pino({ level: "warn" }, stream);
  const write = createAccessLogWriter(logger);
  write([FACTS]);
  expect(lines).toEqual([]);
  logger.level = "info";
  write([FACTS]);
  expect(lines).toHaveLength(1);
});

test("a logger of another kind is called as usual", () => {
  const calls: unknown[] = [];
  const info = (...args: unknown[]) => calls.push(args);
  const silent = () => undefined;
  const others = { fatal: silent, error: silent, warn: silent, debug: silent, trace: silent, silent };
  const logger = { ...others, level: "info", info, child: () => logger };
  createAccessLogWriter(logger)([FACTS]);
  expect(calls).toEqual([[FACTS, "request"]]);
});
