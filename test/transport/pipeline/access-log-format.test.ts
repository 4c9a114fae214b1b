import { Writable } from "node:stream";
import { pino } from "pino";
import { expect, test } from "vitest";
import { memoizable } from "../../../src/lib/memoize.ts";
import { type AccessLogEntry, createAccessLogWriter } from "../../../src/transport/pipeline/access-log.ts";

/** Returns the written lines. */
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

const FIELDS = {
  rpc: "keyhold.v2alpha1.ApiKeysService/VerifyApiKey",
  caller: 'oidc:"\\\u2028\n\u0000é\ud83d\ude00',
  items: 3,
};

const ENTRY: AccessLogEntry = {
  reqId: "a-1",
  method: "M-SEARCH",
  status: 200,
  fields: [FIELDS],
  protocol: "rest",
  code: "OK",
  elapsed: 0.123,
  isAccepted: false,
};

const RECORD = {
  reqId: "a-1",
  method: "M-SEARCH",
  status: 200,
  ...FIELDS,
  protocol: "rest",
  code: "OK",
  duration_ms: 0.1,
};

test("a line equals the one that pino writes", () => {
  const { lines, stream } = collector();
  const logger = pino({ level: "info", base: { pid: 1, hostname: "h", from: "a child" } }, stream);
  const write = createAccessLogWriter(logger);
  const { rpc, ...others } = FIELDS;
  logger.info(RECORD, "request");
  write(ENTRY);
  write({ ...ENTRY, fields: [{ rpc }, memoizable(others)] });
  write({ ...ENTRY, fields: [{ rpc }, {}, others] });
  expect(lines).toHaveLength(4);
  expect(new Set(lines.map(withoutTime)).size).toBe(1);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ ...RECORD, level: 30, msg: "request", from: "a child" });
});

test("lines below the level are dropped, and the level may change", () => {
  const { lines, stream } = collector();
  const logger = pino({ level: "warn" }, stream);
  const write = createAccessLogWriter(logger);
  write(ENTRY);
  expect(lines).toEqual([]);
  logger.level = "info";
  write(ENTRY);
  expect(lines).toHaveLength(1);
});

test("a logger of another kind is called as usual", () => {
  const calls: unknown[] = [];
  const info = (...args: unknown[]) => calls.push(args);
  const silent = () => undefined;
  const others = { fatal: silent, error: silent, warn: silent, debug: silent, trace: silent, silent };
  const logger = { ...others, level: "info", info, child: () => logger };
  createAccessLogWriter(logger)(ENTRY);
  expect(calls).toEqual([[RECORD, "request"]]);
});
