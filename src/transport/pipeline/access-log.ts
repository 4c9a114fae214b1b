import type { FastifyBaseLogger, FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { symbols } from "pino";
import type { EndListener } from "../../api/rpc.ts";
import { systemClock } from "../../lib/clock.ts";
import { memoizable, memoize } from "../../lib/memoize.ts";
import { CLIENT_CLOSED_REQUEST, codeOfStatus, OK, type Protocol } from "../wire/protocol.ts";

declare module "fastify" {
  interface FastifyRequest {
    logFields: ({ rpc?: string; protocol?: Protocol; code?: string } & Record<string, string>) | undefined;
    onEnd: EndListener | undefined;
    isAccepted: boolean | undefined;
    /** Work that the log entry waits for. */
    work: Promise<unknown> | undefined;
  }
}

/** Counts calls: `begin` when one starts, then `end` of the counter for its RPC and protocol. */
export interface CallCounters {
  begin(): void;
  /** `rpc` is `package.Service/Method`, or `other` for a request that is no RPC; `code` the name of a gRPC code, such as `NOT_FOUND`. */
  of(rpc: string, protocol: Protocol): { end(code: string, milliseconds: number): void };
}

export type CallCounter = ReturnType<CallCounters["of"]>;

export const uncounted: CallCounters = { begin: () => {}, of: () => ({ end: () => {} }) };

/** Writes one line per request. The URL is not logged: a caller who confuses a key_id with a secret would leave the secret in the log. */
export function registerAccessLog(fastify: FastifyInstance, counters: CallCounters, write: WriteEntry): void {
  /** The response is complete or the client has disconnected, although work may continue. */
  const end = (request: FastifyRequest, reply: FastifyReply) => {
    const { raw, elapsedTime: elapsed } = reply;
    // In HTTP/2 an incomplete response is also "finished" when its stream is closed.
    const status = raw.writableEnded && raw.writableFinished ? reply.statusCode : CLIENT_CLOSED_REQUEST;
    const { rpc = "other", protocol = "rest", code = codeOfStatus(status) } = request.logFields ?? {};
    counters.of(rpc, protocol).end(code, elapsed);
    request.onEnd?.(code, protocol);
    const writeLine = () => {
      const { id: reqId, method, logFields = {}, log, isAccepted = false } = request;
      const { protocol: _, code: error, ...fields } = logFields;
      const entry = { reqId, method, status, fields: [fields], protocol, code, elapsed, isAccepted };
      // A gRPC error has the HTTP status 200.
      if (fields.rpc === undefined && error === undefined && status < 400) log.debug(recordOf(entry), "request");
      else write(entry);
    };
    if (request.work === undefined) writeLine();
    else request.work.then(writeLine, writeLine);
  };
  for (const name of ["logFields", "onEnd", "isAccepted", "work"]) fastify.decorateRequest(name);
  fastify.addHook("onRequest", (request, reply, next) => {
    request.logFields = {};
    reply.header("x-request-id", request.id);
    counters.begin();
    let isOver = false;
    const onOver = () => {
      if (!isOver) end(request, reply);
      isOver = true;
    };
    // Fastify's own hook is not called when the client disconnects. Not `once`, which allocates a wrapper: each is emitted once.
    reply.raw.on("finish", onOver).on("close", onOver);
    next();
  });
}

export type LogFields = Readonly<Record<string, string | number>>;

export interface AccessLogEntry {
  /** As returned by `requestIdOf`; needs no escaping. */
  readonly reqId: string;
  /** A token (RFC 9110 §9.1), which needs no escaping; Node rejects any other. */
  readonly method: string;
  readonly status: number;
  /** Further fields of the call, with unique names. Memoizable ones are formatted once. */
  readonly fields: readonly LogFields[];
  readonly protocol: Protocol;
  /** The name of a gRPC code. */
  readonly code: string;
  /** Milliseconds. */
  readonly elapsed: number;
  /** Whether the call has verified credentials, and all of them are valid. */
  readonly isAccepted: boolean;
}

export type WriteEntry = (entry: AccessLogEntry) => void;

/** Which calls that verify credentials are logged: those whose credentials are all valid can be left out or sampled; no other. */
export type LogVerifications = "all" | "failed" | "sampled";

/** The written line stands for so many calls. */
const SAMPLE_RATE = 100;

const SAMPLED = memoizable({ sample_rate: SAMPLE_RATE });

/** Returns a function that writes the lines of calls. `random` returns a number from 0 to 1, exclusive. */
export function createAccessLogWriter(
  logger: FastifyBaseLogger,
  verifications: LogVerifications = "all",
  random: () => number = Math.random,
): WriteEntry {
  const write = createLineWriter(logger);
  if (verifications === "all") return write;
  return (entry) => {
    // An accepted credential is of no use to a client that has disconnected, for one.
    if (!entry.isAccepted || entry.code !== OK) write(entry);
    else if (verifications === "sampled" && random() * SAMPLE_RATE < 1)
      write({ ...entry, fields: [...entry.fields, SAMPLED] });
  };
}

const INFO = 30;

/**
 * Returns a function that writes the same line as `logger.info(recordOf(entry), "request")`. Pino looks for serializers, redaction and
 * formatters at each value, which takes ten times as long. Falls back to the logger if it is not one that the command creates.
 */
function createLineWriter(logger: FastifyBaseLogger): WriteEntry {
  const [stream, starts, time] = [symbols.streamSym, symbols.lsCacheSym, symbols.timeSym].map((symbol): unknown =>
    Reflect.get(logger, symbol),
  );
  const [start, bindings]: unknown[] = [Reflect.get(Object(starts), INFO), Reflect.get(logger, symbols.chindingsSym)];
  const isEnabled: unknown = Reflect.get(logger, "isLevelEnabled");
  if (!isStream(stream) || typeof time !== "function" || typeof start !== "string" || typeof isEnabled !== "function") {
    return (entry) => logger.info(recordOf(entry), "request");
  }
  let [now, head] = [0, ""];
  /** The start of the line, which the lines of a millisecond share. Not `a + b`, a tree that V8 walks each time that it is written. */
  const headNow = (): string => {
    const before = now;
    now = systemClock.now();
    if (now !== before) head = [start, time(), bindings ?? "", ',"reqId":"'].join("");
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
  let text = "";
  for (const name in fields) text += `,"${name}":${toJson(fields[name] ?? "")}`;
  return text;
});

/** Most values need no escaping. */
const PLAIN = /^[\w:.-]*$/;

function toJson(value: string | number): string {
  return typeof value === "string" && PLAIN.test(value) ? `"${value}"` : JSON.stringify(value);
}
