import { namesNoHttp } from "../../../src/transport/listener/acceptor.ts";
import type { Seeded } from "../../support/seeded.ts";
import { http1Answers } from "../answers.ts";
import { CALLS, type CallTarget, type Field, OTHER_REQUESTS } from "../calls.ts";
import { escaped, type Family, type HostileCase } from "../case.ts";
import type { CaseContext } from "../case-context.ts";
import { Transmission } from "../damage.ts";
import { serverFaults } from "../faults.ts";
import { converse, type Ending, toHttp1 } from "../http1.ts";
import type { ParsedConnection } from "../references.ts";
import type { Target } from "../target.ts";
import { chooseGarbage } from "./http1-garbage.ts";

/** Pipelined HTTP/1.1 requests and garbage, truncated, reset or half-closed at any point. */
export const http1: Family = {
  name: "http1",
  parallel: 16,
  weight: 4,
  generate: (random, context) => new Http1Case(random, context),
};

/** A part of the input, with the same length for any target. */
type Part = (target: CallTarget, credentials: readonly Field[]) => Buffer;

class Http1Case implements HostileCase {
  readonly kind: string;
  readonly #context: CaseContext;
  readonly #parts: readonly Part[];
  readonly #transmission: Transmission;
  readonly #ending: Ending;

  constructor(random: Seeded, context: CaseContext) {
    this.#context = context;
    this.#parts = Array.from({ length: 1 + random.below(5) }, () => choosePart(random));
    this.#transmission = new Transmission(random, { damage: 4, cut: 3 });
    this.#ending = random.below(4) === 0 ? "reset" : "half-close";
    const { forms } = this.#transmission;
    this.kind = `${forms.length === 0 ? "whole" : forms.join(", ")}, then ${this.#ending}`;
  }

  description(target: Target): string {
    const segments = this.#transmission.split(this.#bytes(target.maskedCredentials));
    return [this.kind, ...segments.map((segment) => escaped(segment))].join("\n");
  }

  async run(target: Target): Promise<readonly string[]> {
    const bytes = this.#bytes(target.credentials);
    const segments = this.#transmission.split(bytes);
    const { received, isClosed } = await converse(target.port, segments, { ending: this.#ending, tls: target.tls });
    const faults = serverFaults(received);
    // A Watch continues for a client that has half-closed, unless its deadline is still in its header.
    if (this.#ending === "reset" || (this.#transmission.isDamaged && bytes.includes("Health/Watch"))) return faults;
    const open = isClosed ? [] : ["the connection stayed open after the client had closed its side"];
    return [...faults, ...open, ...compare(bytes, received, await this.#context.references.parse(bytes))];
  }

  /** Returns the bytes. Truncated requests act on the keys that the monitor watches. */
  #bytes(credentials: readonly Field[]): Buffer {
    const { unfinished, completed } = this.#context.monitor;
    const whole = this.#parts.map((part) => part(completed(), credentials));
    const length = whole.reduce((sum, part) => sum + part.length, 0);
    const end = this.#transmission.end(length);
    let offset = 0;
    const parts = this.#parts.map((part, place) => {
      const same = whole[place] ?? Buffer.alloc(0);
      offset += same.length;
      // Damage may shorten a request and so complete it.
      return offset > end && !this.#transmission.isDamaged ? part(unfinished(), credentials) : same;
    });
    return this.#transmission.damaged(Buffer.concat(parts).subarray(0, end));
  }
}

/** Header fields that change how a request is read or answered. */
const MORE_FIELDS: readonly (readonly Field[])[] = [
  [["expect", "100-continue"]],
  [["expect", "something else"]],
  [["connection", "close"]],
  [["connection", "keep-alive"]],
  [
    ["connection", "Upgrade, HTTP2-Settings"],
    ["upgrade", "h2c"],
    ["http2-settings", "AAMAAABkAAQAoAAAAAIAAAAA"],
  ],
  [
    ["connection", "upgrade"],
    ["upgrade", "websocket"],
  ],
  [["host", "example.com"]],
  [["x-request-id", "a".repeat(200)]],
  [["cookie", "a".repeat(15_000)]],
  [["accept-encoding", "br, gzip;q=0.5"]],
  [["content-encoding", "gzip"]],
  [["origin", "http://example.com"]],
  [["if-none-match", "*"]],
  [["range", "bytes=0-0"]],
  [["te", "trailers"]],
  [["trailer", "x-a"]],
];

function choosePart(random: Seeded): Part {
  if (random.below(4) === 0) {
    const garbage = chooseGarbage(random);
    return () => garbage;
  }
  const make = random.below(3) === 0 ? makeOf(random.pick(OTHER_REQUESTS)) : random.pick(CALLS);
  const isChunked = random.below(4) === 0;
  const more = random.below(3) === 0 ? random.pick(MORE_FIELDS) : [];
  const isKnown = random.below(8) !== 0;
  return (target, credentials) =>
    toHttp1(make(target), { isChunked, fields: [...(isKnown ? credentials : []), ...more] });
}

function makeOf<T>(value: T): () => T {
  return () => value;
}

/** Reasons of rejections that end the connection. */
const NOT_HTTP = /"reason":"(?:HTTP_MALFORMED|HEADER_TOO_LARGE|REQUEST_TIMED_OUT)"/;

/**
 * Errors of Node's parser that need no rejection: what it takes for HTTP/2, and half of an HTTP/2 preface. A first line without an HTTP
 * version needs none either.
 */
const IGNORABLE_ERRORS = ["HPE_PAUSED_H2_UPGRADE", "HPE_INVALID_EOF_STATE"];

/** Compares the responses with the requests that Node's parser read from the same bytes. */
function compare(bytes: Buffer, received: Buffer, understood: ParsedConnection): string[] {
  const answers = http1Answers(received);
  const { least, most, mustRefuse, mayRefuse } = expectedOf(bytes, understood);
  const isClosed = /\r\nconnection: close\r\n/i.test(answers.at(-1)?.text ?? "");
  const refusals = answers.filter(({ text }) => NOT_HTTP.test(text)).length;
  const seen = `${answers.map(({ status }) => status)} for ${JSON.stringify(understood)}`;
  if (answers.length > most) return [`more answers than requests: ${seen}`];
  if (answers.length < least && !isClosed) return [`fewer answers than complete requests: ${seen}`];
  if (mustRefuse && refusals === 0 && !isClosed) return [`malformed bytes were not rejected: ${seen}`];
  if (refusals > mayRefuse) return [`rejected a well-formed request: ${seen}`];
  return [];
}

/** Returns the possible numbers of responses and rejections, and whether the bytes after them must be rejected. */
function expectedOf(bytes: Buffer, { requests, error }: ParsedConnection) {
  const last = requests.findIndex(({ isLast }) => isLast);
  const served = last === -1 ? requests : requests.slice(0, last + 1);
  const complete = served.filter(({ isComplete }) => isComplete).length;
  const isRefused = error !== undefined && (last === -1 || complete < served.length);
  // Node reads a line with a path as an HTTP/0.9 request.
  const isNoHttp = namesNoHttp(bytes);
  const isIgnorable = isNoHttp || (requests.length === 0 && IGNORABLE_ERRORS.includes(error ?? ""));
  const hosts = served.filter((request) => request.isRefused).length;
  return {
    least: isNoHttp ? 0 : complete,
    most: served.length + (isRefused ? 1 : 0),
    // An incomplete request may have been rejected by its header.
    mustRefuse: isRefused && !isIgnorable && complete === served.length,
    mayRefuse: hosts + (isRefused ? 1 : 0),
  };
}
