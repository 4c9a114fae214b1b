import type { DescMethodUnary } from "@bufbuild/protobuf";
import { type Seeded, seeded } from "../../support/seeded.ts";
import { frame, REST_ROUTES, RPCS, rpcPath } from "../../support/wire.ts";
import { http1Answers } from "../answers.ts";
import {
  type CallTarget,
  type Field,
  type HostileRequest,
  PROTOCOLS,
  type Protocol,
  restCall,
  rpcCall,
} from "../calls.ts";
import { escaped, type Family, type HostileCase } from "../case.ts";
import type { CaseContext } from "../case-context.ts";
import { chooseDamage } from "../damage.ts";
import { http2Faults, serverFaults } from "../faults.ts";
import { converse, toHttp1 } from "../http1.ts";
import { HELLO, toHttp2 } from "../http2.ts";
import { converseHttp2 } from "../http2-exchange.ts";
import type { Target } from "../target.ts";
import { chooseOddField, compressedBody, ENVELOPES, MESSAGES, type OddBody } from "./message-bodies.ts";

/** Well-formed HTTP whose body is not a message of gRPC, gRPC-Web, Connect or REST, or has an unusual envelope. */
export const framing: Family = {
  name: "framing",
  parallel: 16,
  weight: 3,
  generate: (random, context) => new FramingCase(random, context),
};

/** Maximum size of a body before the server's settings arrive (RFC 9113 §6.9.2). */
const INITIAL_WINDOW = 65_535;

/** Milliseconds without data after which a request counts as unanswered. */
const TIMEOUT = 5_000;

class FramingCase implements HostileCase {
  readonly kind: string;
  readonly #context: CaseContext;
  readonly #make: (target: CallTarget) => HostileRequest;
  readonly #http: 1 | 2;
  readonly #isNoRequest: boolean;
  readonly #isKnown: boolean;

  constructor(random: Seeded, context: CaseContext) {
    const rpc = random.pick(RPCS);
    // The last number selects REST.
    const protocol = PROTOCOLS[random.below(PROTOCOLS.length + 1)];
    const seed = random.below(2 ** 31);
    const { kind, make } = protocol === undefined ? chooseRest(random, rpc) : chooseRpc(random, rpc, protocol);
    this.#context = context;
    this.#http = random.below(2) === 0 ? 1 : 2;
    this.#isKnown = random.below(8) !== 0;
    this.kind = `${protocol?.name ?? "rest"}: ${kind}`;
    const makeOdd = (target: CallTarget) => make(target, seeded(seed));
    this.#isNoRequest = makeOdd(context.monitor.completed()).isNoRequest;
    this.#make = (target) => makeOdd(target).request;
  }

  description(target: Target): string {
    return `${this.kind}\n${escaped(this.#request(target.maskedCredentials).bytes)}`;
  }

  async run(target: Target): Promise<readonly string[]> {
    const { bytes, http } = this.#request(target.credentials);
    if (http === 1) {
      const { received } = await converse(target.port, [bytes], { tls: target.tls });
      const answers = http1Answers(received);
      return [...serverFaults(received), ...(answers.length === 1 ? [] : [`answered ${answers.length} times`])];
    }
    const options = { ending: "wait", awaited: [1], timeout: TIMEOUT, tls: target.tls } as const;
    const outcome = await converseHttp2(target.port, [bytes], options);
    const stream = outcome.streams.get(1);
    const isAnswered = stream?.fields[":status"] !== undefined && stream.isEnded;
    return [...http2Faults(outcome), ...(isAnswered ? [] : [`not answered: ${JSON.stringify(stream)}`])];
  }

  /** Invalid requests act on the keys that the monitor watches. */
  #request(credentials: readonly Field[]) {
    const { unfinished, completed } = this.#context.monitor;
    const made = this.#make(this.#isNoRequest ? unfinished() : completed());
    const known = new Set(made.fields.map(([name]) => name));
    const added = this.#isKnown ? credentials.filter(([name]) => !known.has(name)) : [];
    const request = { ...made, fields: [...made.fields, ...added] };
    const http = request.body.length > INITIAL_WINDOW ? 1 : this.#http;
    return { bytes: http === 1 ? toHttp1(request) : Buffer.concat([HELLO, toHttp2(1, request)]), http };
  }
}

interface OddRequest {
  readonly request: HostileRequest;
  readonly isNoRequest: boolean;
}

interface Choice {
  readonly kind: string;
  /** Equal seeds yield equal choices for any target. */
  readonly make: (target: CallTarget, random: Seeded) => OddRequest;
}

function chooseRpc(random: Seeded, rpc: DescMethodUnary, protocol: Protocol): Choice {
  const call = (target: CallTarget) => rpcCall(rpc, protocol, target);
  if (random.below(6) === 0) return oddFields(call);
  if (!protocol.isFramed && random.below(4) === 0) return random.below(2) === 0 ? oddGet(rpc) : compressed(call);
  if (protocol.isFramed && random.below(2) === 0) {
    const [kind, make] = random.pick(Object.entries(ENVELOPES));
    return { kind, make: (target, seed) => withBody(call(target), make(call(target).body.subarray(5), seed)) };
  }
  const [kind, make] = random.pick(Object.entries(MESSAGES[protocol.isJson ? "json" : "proto"]));
  return {
    kind,
    make: (target, seed) => {
      const request = call(target);
      const { body } = make(protocol.isFramed ? request.body.subarray(5) : request.body, seed);
      return withBody(request, { body: protocol.isFramed ? frame(body) : body });
    },
  };
}

function chooseRest(random: Seeded, rpc: DescMethodUnary): Choice {
  const route = random.pick(REST_ROUTES.filter((one) => one.rpc === rpc));
  const call = (target: CallTarget) => restCall(route, target);
  if (random.below(4) === 0) return oddFields(call);
  if (random.below(4) === 0) return compressed(call);
  if (random.below(4) === 0) {
    return {
      kind: "damaged path",
      make: (target, seed) => {
        const request = call(target);
        const path = chooseDamage(seed)(Buffer.from(request.path)).toString("latin1");
        const encoded = encodeURI(path).replaceAll("%25", "%");
        return { request: { ...request, path: `/${encoded.replace(/^\/+/, "")}` }, isNoRequest: false };
      },
    };
  }
  const [kind, make] = random.pick(Object.entries(MESSAGES.json));
  return { kind, make: (target, seed) => withBody(call(target), make(call(target).body, seed)) };
}

function compressed(call: (target: CallTarget) => HostileRequest): Choice {
  return {
    kind: "compression",
    make: (target, seed) => withBody(call(target), compressedBody(call(target).body, seed)),
  };
}

function oddFields(call: (target: CallTarget) => HostileRequest): Choice {
  return {
    kind: "odd header fields",
    make: (target, seed) => {
      const { body } = call(target);
      return withBody(call(target), { body, fields: [chooseOddField(seed), chooseOddField(seed)] });
    },
  };
}

const GET_PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  message: ["{}", "", "%ff", "{", "e30", "e30=", "AAAA", "%00", "a".repeat(10_000)],
  encoding: ["json", "proto", "", "xml", "json&encoding=proto"],
  base64: ["1", "0", "", "x"],
  compression: ["gzip", "br", "identity", "", "snappy"],
  connect: ["v1", "v2", ""],
  other: ["a"],
};

/** A Connect GET, of RPCs that allow it and of others. */
function oddGet(rpc: DescMethodUnary): Choice {
  return {
    kind: "odd GET",
    make: (_, seed) => {
      const pairs = Object.entries(GET_PARAMETERS).flatMap(([name, values]) =>
        seed.below(4) === 0 ? [] : [`${name}=${seed.pick(values)}`],
      );
      const path = `${rpcPath(rpc)}?${pairs.join("&")}`;
      return { request: { kind: "", method: "GET", path, fields: [], body: Buffer.alloc(0) }, isNoRequest: false };
    },
  };
}

function withBody(request: HostileRequest, { body, fields = [], isNoRequest = false }: OddBody): OddRequest {
  const replaced = new Set(fields.map(([name]) => name));
  const kept = request.fields.filter(([name]) => !replaced.has(name));
  const last = new Map(fields);
  return { request: { ...request, body, fields: [...kept, ...last] }, isNoRequest };
}
