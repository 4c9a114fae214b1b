import type { Message, Registry } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { toConnectError } from "../../api/errors.ts";
import type { Rpc } from "../../api/rpc.ts";
import { onceFrozen } from "../../lib/once-frozen.ts";
import { type CallCounter, type CallCounters, rpcName } from "../calls.ts";
import { toErrorBody } from "../rest/error-body.ts";
import { errorHeaders } from "../rest/error-response.ts";
import { decodeSegment } from "../rest/path-template.ts";
import { Refusal } from "../rest/refusal.ts";
import { isKnown } from "../rest/response.ts";
import type { Routes, Route as Template } from "../rest/routes.ts";
import { splitTarget } from "../rest/target.ts";
import type { LaneCall } from "./call.ts";
import type { Answer, Fields } from "./exchange.ts";
import type { FindRoute, RequestHeaders, Response, Route } from "./route.ts";

/** The content types that the lane takes for JSON. */
export const JSON_TYPES: readonly string[] = ["application/json", "application/json; charset=utf-8"];

const RESPONSE_TYPE = "application/json; charset=utf-8";

/** HEAD and OPTIONS are answered in ways of their own. */
const METHODS: ReadonlySet<string> = new Set(["GET", "POST", "PUT", "PATCH", "DELETE"]);

/** Finds what a REST request leads to. One that leads nowhere, and one that Fastify does not hand on as it is, is not found. */
export function restFinder({ router, registry }: Routes, counters: CallCounters): FindRoute {
  const tell = tellerWith(registry);
  const counterOf = counterOfRest(counters);
  return (method, url, headers) => {
    if (!METHODS.has(method) || !url.startsWith("/") || url.includes("#")) return undefined;
    const { path, query } = splitTarget(url);
    // Fastify refuses a malformed encoding wherever in the path it stands.
    if (decodeSegment(path) === undefined) return undefined;
    const found = router.find(method, path);
    if (found.kind !== "found" || !isTaken(found.value, headers)) return undefined;
    return new RestRoute(found.value, found.segments, query, { tell, counter: counterOf(found.value.rpc) });
  };
}

/** Without a type only what shows that it has no body: of the others Fastify refuses some before it asks who calls. */
function isTaken({ body }: Template, headers: RequestHeaders): boolean {
  const { "content-type": type, "content-length": length, "transfer-encoding": encoding } = headers;
  if (type !== undefined) return JSON_TYPES.includes(type);
  return encoding === undefined && (length === "0" || (length === undefined && body.kind === "none"));
}

/** Looked up by the RPC itself: paths with variables come by here in every call. */
function counterOfRest(counters: CallCounters): (rpc: Rpc) => CallCounter {
  const known = new Map<Rpc, CallCounter>();
  return (rpc) => {
    const counter = known.get(rpc) ?? counters.of(rpcName(rpc), "rest");
    known.set(rpc, counter);
    return counter;
  };
}

type Tell = ReturnType<typeof tellerWith>;

/** What the routes of an RPC share. */
interface OfRest {
  readonly tell: Tell;
  readonly counter: CallCounter;
}

/** A REST path with the parts of the request that it holds. */
class RestRoute implements Route {
  readonly rpc: Rpc;
  readonly protocol = "rest";
  readonly counter: CallCounter;
  readonly maxBodyBytes: number;
  readonly #template: Template;
  readonly #segments: readonly string[];
  readonly #query: string;
  readonly #tell: Tell;

  constructor(template: Template, segments: readonly string[], query: string, { tell, counter }: OfRest) {
    this.rpc = template.rpc;
    this.maxBodyBytes = template.rpc.maxRequestBytes;
    this.#template = template;
    this.#segments = segments;
    this.#query = query;
    this.counter = counter;
    this.#tell = tell;
  }

  timeout(): undefined {}

  decode(body: Uint8Array): Message {
    return this.#template.decode({ segments: this.#segments, query: this.#query, body });
  }

  tooLarge(): Error {
    return new Refusal("BODY_TOO_LARGE");
  }

  answer(call: LaneCall, response: Response): Answer {
    return answer(call, this.#template.encode(response));
  }

  refuse(call: LaneCall, cause: unknown): Answer {
    return refuse(call, cause, this.#tell);
  }
}

function answer(call: LaneCall, body: string): Answer {
  const headers = call.responseHeaders();
  if (call.headerSet("cache-control") === undefined) headers.push("cache-control", "no-store");
  if (isKnown(call.method, call.headerSet("etag"), call.header("if-none-match"))) {
    return { status: 304, headers, body: "" };
  }
  headers.push("content-type", RESPONSE_TYPE, "content-length", String(Buffer.byteLength(body)));
  return { status: 200, headers, body };
}

/** What an error is on the wire, but for what the call adds. */
interface Told {
  readonly status: number;
  readonly code: string;
  readonly body: string;
  /** Names and values by turns. */
  readonly headers: readonly string[];
  /** Headers that the call must not add. */
  readonly names: ReadonlySet<string>;
}

/** For `refuse`; `registry` knows the types of the details. */
function tellerWith(registry: Registry): (error: ConnectError | Refusal) => Told {
  return onceFrozen((error) => {
    const content = toErrorBody(error, registry);
    const body = JSON.stringify(content);
    const length = String(Buffer.byteLength(body));
    const own = [["cache-control", "no-store"], ...errorHeaders(error), ["content-length", length]];
    // What a handler had set for the answer that it did not give.
    const names = new Set(["etag", ...own.map(([name = ""]) => name)]);
    const { code: status, status: code } = content.error;
    return { status, code, body, headers: ["content-type", RESPONSE_TYPE, ...own.flat()], names };
  });
}

function refuse(call: LaneCall, cause: unknown, tell: Tell): Answer {
  const { status, code, body, headers, names } = tell(cause instanceof Refusal ? cause : toConnectError(cause));
  call.add({ code });
  return { status, headers: [...headers, ...without(call.responseHeaders(), names)], body };
}

function without(fields: Fields, names: ReadonlySet<string>): Fields {
  return fields.filter((_, place) => !names.has(fields[place - (place % 2)] ?? ""));
}
