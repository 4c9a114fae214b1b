import { namesNoHttp } from "../../../src/transport/listener/protocol-detection.ts";
import type { Seeded } from "../../support/seeded.ts";
import { http1Answers } from "../answers.ts";
import { CALLS, type CallTarget, type Field, OTHER_REQUESTS } from "../calls.ts";
import { escaped, type Family, type HostileCase } from "../case.ts";
import { Mishap } from "../damage.ts";
import { serverFaults } from "../faults.ts";
import { converse, type Ending, toHttp1 } from "../http1.ts";
import type { Understood } from "../references.ts";
import type { Target } from "../target.ts";
import type { World } from "../world.ts";
import { chooseGarbage } from "./http1-garbage.ts";

/** Pipelined requests and garbage in HTTP/1.1, cut, reset and half-closed anywhere. */
export const http1: Family = {
  name: "http1",
  parallel: 16,
  weight: 4,
  generate: (random, world) => new Http1Case(random, world),
};

/** A part of what is sent: it has the same length for any target. */
type Part = (target: CallTarget, credentials: readonly Field[]) => Buffer;

class Http1Case implements HostileCase {
  readonly kind: string;
  readonly #world: World;
  readonly #parts: readonly Part[];
  readonly #mishap: Mishap;
  readonly #ending: Ending;

  constructor(random: Seeded, world: World) {
    this.#world = world;
    this.#parts = Array.from({ length: 1 + random.below(5) }, () => choosePart(random));
    this.#mishap = new Mishap(random, { damage: 4, cut: 3 });
    this.#ending = random.below(4) === 0 ? "reset" : "half-close";
    const { forms } = this.#mishap;
    this.kind = `${forms.length === 0 ? "whole" : forms.join(", ")}, then ${this.#ending}`;
  }

  shown(target: Target): string {
    const segments = this.#mishap.split(this.#bytes(target.maskedCredentials));
    return [this.kind, ...segments.map((segment) => escaped(segment))].join("\n");
  }

  async play(target: Target): Promise<readonly string[]> {
    const bytes = this.#bytes(target.credentials);
    const segments = this.#mishap.split(bytes);
    const { received, isClosed } = await converse(target.port, segments, { ending: this.#ending, tls: target.tls });
    const faults = serverFaults(received);
    // A watch goes on for a client that has closed its side, unless its deadline is still in its header.
    if (this.#ending === "reset" || (this.#mishap.isDamaged && bytes.includes("Health/Watch"))) return faults;
    const open = isClosed ? [] : ["the connection stayed open after the client had closed its side"];
    return [...faults, ...open, ...compare(bytes, received, await this.#world.references.understand(bytes))];
  }

  /** Requests that the cut leaves unfinished act on the keys that the witness watches. */
  #bytes(credentials: readonly Field[]): Buffer {
    const { unfinished, completed } = this.#world.witness;
    const whole = this.#parts.map((part) => part(completed(), credentials));
    const length = whole.reduce((sum, part) => sum + part.length, 0);
    const end = this.#mishap.end(length);
    let offset = 0;
    const parts = this.#parts.map((part, place) => {
      const same = whole[place] ?? Buffer.alloc(0);
      offset += same.length;
      // Damage may make a request shorter, and so complete.
      return offset > end && !this.#mishap.isDamaged ? part(unfinished(), credentials) : same;
    });
    return this.#mishap.damaged(Buffer.concat(parts).subarray(0, end));
  }
}

/** Fields that change how a request is read or answered. */
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

/** Refused as what is not HTTP, after which the connection ends. */
const NOT_HTTP = /"reason":"(?:HTTP_MALFORMED|HEADER_TOO_LARGE|REQUEST_TIMED_OUT)"/;

/** What need not be refused, besides a first line without a version of HTTP: what Node takes for HTTP/2, and half a preface of it. */
const SILENT = ["HPE_PAUSED_H2_UPGRADE", "HPE_INVALID_EOF_STATE"];

/** Compares the answers with what Node's parser understood of the same bytes. */
function compare(bytes: Buffer, received: Buffer, understood: Understood): string[] {
  const answers = http1Answers(received);
  const { least, most, mustRefuse, mayRefuse } = expectedOf(bytes, understood);
  const isClosed = /\r\nconnection: close\r\n/i.test(answers.at(-1)?.text ?? "");
  const refusals = answers.filter(({ text }) => NOT_HTTP.test(text)).length;
  const seen = `${answers.map(({ status }) => status)} for ${JSON.stringify(understood)}`;
  if (answers.length > most) return [`more answers than requests: ${seen}`];
  if (answers.length < least && !isClosed) return [`fewer answers than complete requests: ${seen}`];
  if (mustRefuse && refusals === 0 && !isClosed) return [`what is malformed was not refused: ${seen}`];
  if (refusals > mayRefuse) return [`refused what is well-formed: ${seen}`];
  return [];
}

/** How many answers there may be, whether what follows them is refused, and how many refusals there may be. */
function expectedOf(bytes: Buffer, { requests, error }: Understood) {
  const last = requests.findIndex(({ isLast }) => isLast);
  const served = last === -1 ? requests : requests.slice(0, last + 1);
  const complete = served.filter(({ isComplete }) => isComplete).length;
  const isRefused = error !== undefined && (last === -1 || complete < served.length);
  // Node takes it for a request in HTTP/0.9, if it has a path.
  const isNoHttp = namesNoHttp(bytes);
  const isSilent = isNoHttp || (requests.length === 0 && SILENT.includes(error ?? ""));
  const hosts = served.filter((request) => request.isRefused).length;
  return {
    least: isNoHttp ? 0 : complete,
    most: served.length + (isRefused ? 1 : 0),
    // A request whose end is missing may have been refused by its header.
    mustRefuse: isRefused && !isSilent && complete === served.length,
    mayRefuse: hosts + (isRefused ? 1 : 0),
  };
}
