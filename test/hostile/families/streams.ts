import { once } from "node:events";
import { type ClientHttp2Stream, connect } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import type { Seeded } from "../../support/seeded.ts";
import { answersIn, requestFrame } from "../../support/stream-frames.ts";
import { rpcPath } from "../../support/wire.ts";
import { escaped, type Family, type HostileCase } from "../case.ts";
import type { CaseContext } from "../case-context.ts";
import { split } from "../damage.ts";
import type { Target } from "../target.ts";

/** Streams of `StreamVerify` with few or thousands of requests, of which ids repeat and messages are malformed, that end in every way. */
export const streams: Family = {
  name: "streams",
  parallel: 8,
  weight: 1,
  generate: (random, context) => new StreamCase(random, context),
};

/** What follows the requests, and the gRPC status with which the stream must end. */
const TAILS = {
  nothing: [Buffer.alloc(0), "0"],
  "part of a head": [Buffer.of(0, 0), "3"],
  "an incomplete message": [Buffer.of(0, 0, 0, 0, 9, 8), "3"],
  "a malformed message": [Buffer.of(0, 0, 0, 0, 2, 0xff, 0xff), "3"],
  "a compressed message": [Buffer.of(1, 0, 0, 0, 0), "13"],
  "a message of 4 GiB": [Buffer.of(0, 0xff, 0xff, 0xff, 0xff, 1), "8"],
} as const;

const KINDS = Object.keys(TAILS) as (keyof typeof TAILS)[];

/** Milliseconds in which a stream must end. */
const TIMEOUT = 20_000;

class StreamCase implements HostileCase {
  readonly kind: string;
  /** Ids, and whether the credential is that of a key. */
  readonly #requests: readonly { readonly id: number; readonly isKnown: boolean }[];
  readonly #tail: keyof typeof TAILS;
  readonly #ending: "half-close" | "reset" | "unread";
  readonly #pieces: number;
  readonly #random: Seeded;
  readonly #context: CaseContext;
  readonly maxTick = 1_000;

  constructor(random: Seeded, context: CaseContext) {
    this.#context = context;
    this.#random = random;
    const count = random.below(10) === 0 ? 5_000 : random.below(20);
    const ids = random.pick([1, 4, 2 ** 31]);
    this.#requests = Array.from({ length: count }, () => ({ id: random.below(ids), isKnown: random.below(2) === 0 }));
    this.#tail = random.pick(KINDS);
    this.#ending = random.pick(["half-close", "half-close", "reset", "unread"]);
    this.#pieces = 1 + random.below(5);
    this.kind = `${this.#tail}, ${this.#ending}`;
  }

  description(): string {
    return `${this.#requests.length} requests, ${this.kind}: ${escaped(this.#bytes("credential"), 400)}`;
  }

  async run(target: Target): Promise<readonly string[]> {
    const session = connect(target.url, { rejectUnauthorized: false });
    session.on("error", () => {});
    const path = rpcPath(ApiKeysService.method.streamVerify);
    const fields = { "content-type": "application/grpc", te: "trailers", ...Object.fromEntries(target.credentials) };
    const stream = session.request({ ":method": "POST", ":path": path, ...fields });
    stream.on("error", () => {});
    try {
      const { credential } = this.#context.monitor.completed();
      for (const piece of split(this.#bytes(credential), this.#pieces, this.#random)) stream.write(piece);
      if (this.#ending === "half-close") return await this.#check(stream);
      await sleep(20);
      return [];
    } finally {
      session.destroy();
    }
  }

  #bytes(credential: string): Buffer {
    const frames = this.#requests.map(({ id, isKnown }) =>
      requestFrame({ id, request: { credential: isKnown ? credential : `unknown-${id}` } }),
    );
    return Buffer.concat([...frames, TAILS[this.#tail][0]]);
  }

  async #check(stream: ClientHttp2Stream): Promise<string[]> {
    let status: unknown;
    stream.on("trailers", (fields) => {
      status = fields["grpc-status"];
    });
    const chunks: Buffer[] = [];
    stream.on("data", (chunk: Buffer) => chunks.push(chunk)).end();
    const ended = once(stream, "end", { signal: AbortSignal.timeout(TIMEOUT) }).catch(() => "late");
    if ((await ended) === "late") return ["the stream did not end"];
    const idsOf = (items: readonly { readonly id: number }[]) => items.map(({ id }) => id).sort((a, b) => a - b);
    const answers = answersIn(Buffer.concat(chunks));
    const accepted = answers.filter(({ result }) => result.case === "response" && result.value.isValid).length;
    const known = this.#requests.filter(({ isKnown }) => isKnown).length;
    return [
      ...(status === TAILS[this.#tail][1] ? [] : [`the stream ended with the status ${status}`]),
      ...(`${idsOf(answers)}` === `${idsOf(this.#requests)}` ? [] : ["the answers have other ids than the requests"]),
      ...(accepted <= known ? [] : [`${accepted} of ${known} known credentials were accepted`]),
    ];
  }
}
