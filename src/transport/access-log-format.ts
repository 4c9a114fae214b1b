import type { FastifyBaseLogger } from "fastify";
import { symbols } from "pino";
import { systemClock } from "../lib/clock.ts";
import { memoize } from "../lib/memoize.ts";
import { quote } from "../lib/quote.ts";
import type { Protocol } from "./call-metrics.ts";

/** Text and numbers by name. */
export type LogFields = Readonly<Record<string, string | number>>;

/** One line of the access log. */
export interface AccessLogEntry {
  /** As `requestIdOf` returns it: nothing in it is escaped. */
  readonly reqId: string;
  /** A token (RFC 9110 §9.1), which needs no escaping either: Node refuses any other. */
  readonly method: string;
  readonly status: number;
  /** What else is known of the call, each name once. `Shared` fields are formatted once. */
  readonly fields: readonly LogFields[];
  readonly protocol: Protocol;
  /** The name of a gRPC code. */
  readonly code: string;
  /** Milliseconds. */
  readonly elapsed: number;
}

export type WriteEntry = (entry: AccessLogEntry) => void;

const INFO = 30;

/**
 * Returns a function that writes the same line as `logger.info(recordOf(entry), "request")`. Pino looks for serializers, redaction and
 * formatters at each value, which takes three times as long. A logger that is not of the kind that the command makes is called as usual.
 */
export function createAccessLogWriter(logger: FastifyBaseLogger): WriteEntry {
  const [stream, starts, time] = [symbols.streamSym, symbols.lsCacheSym, symbols.timeSym].map((symbol): unknown =>
    Reflect.get(logger, symbol),
  );
  const [start, bindings]: unknown[] = [Reflect.get(Object(starts), INFO), Reflect.get(logger, symbols.chindingsSym)];
  const isEnabled: unknown = Reflect.get(logger, "isLevelEnabled");
  if (!isStream(stream) || typeof time !== "function" || typeof start !== "string" || typeof isEnabled !== "function") {
    return (entry) => logger.info(recordOf(entry), "request");
  }
  let [now, head] = [0, ""];
  /** The start of the line, which the lines of a millisecond share. */
  const headNow = (): string => {
    const before = now;
    now = systemClock.now();
    if (now !== before) head = flat([start, time(), bindings ?? "", ',"reqId":"']);
    return head;
  };
  return (entry) => {
    if (!isEnabled.call(logger, "info")) return;
    const { reqId, method, status, fields, protocol, code, elapsed } = entry;
    let text = `${headNow()}${reqId}","method":"${method}","status":${status}`;
    for (const some of fields) text += membersOf(some);
    text += `,"protocol":"${protocol}","code":"${code}","duration_ms":${inTenths(elapsed)},"msg":"request"}\n`;
    stream.write(text);
  };
}

/** Returns the members of an entry in the order in which they stand in the line. */
export function recordOf({ reqId, method, status, fields, protocol, code, elapsed }: AccessLogEntry): object {
  return Object.assign({ reqId, method, status }, ...fields, { protocol, code, duration_ms: inTenths(elapsed) });
}

function inTenths(milliseconds: number): number {
  return Math.round(milliseconds * 10) / 10;
}

function isStream(value: unknown): value is { write(text: string): unknown } {
  return typeof value === "object" && value !== null && "write" in value && typeof value.write === "function";
}

const membersOf = memoize((fields: LogFields): string => {
  const parts: unknown[] = [];
  for (const name in fields) {
    const value = fields[name] ?? "";
    parts.push(',"', name, '":', typeof value === "number" ? value : quote(value));
  }
  return flat(parts);
});

/** V8 represents `a + b` as a tree, which it walks each time that a line with it is written; `join` copies. */
function flat(parts: readonly unknown[]): string {
  return parts.join("");
}
