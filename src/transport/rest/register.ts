import type { IncomingMessage } from "node:http";
import { createRegistry, type DescFile, type Registry } from "@bufbuild/protobuf";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { file_google_rpc_error_details } from "../../../gen/google/rpc/error_details_pb.js";
import type { Rpc } from "../../api/rpc.ts";
import type { Principal } from "../../domain/principal.ts";
import { HttpError } from "../errors/http-error.ts";
import { FastifyCall } from "../fastify-call.ts";
import { valueLimits } from "../json/scan.ts";
import { hasNoBody, NO_BODY, type ReadBody } from "../request-body.ts";
import { type BodyRule, readRestRules } from "./http-rule.ts";
import { PathRouter, type PathTemplate, splitRequestTarget } from "./path-router.ts";
import { type DecodeRequest, requestDecoder } from "./request-decoder.ts";
import { encodeResponse, type Json, sendJson } from "./response.ts";

/** What a path and an HTTP method lead to. */
export interface Route {
  readonly rpc: Rpc;
  readonly body: BodyRule;
  readonly decode: DecodeRequest;
}

export interface Routes {
  readonly router: PathRouter<Route>;
  readonly templates: readonly PathTemplate[];
  /** The types that answers and error details may hold. */
  readonly registry: Registry;
}

/**
 * The routes of RPCs by the `google.api.http` annotations of their methods (google/api/http.proto). `more` are types for
 * `google.protobuf.Any` and error details, besides those of the RPCs' files and what they import. Throws `Error` if an annotation
 * is wrong or two bindings collide.
 */
export function makeRoutes(rpcs: readonly Rpc[], more: Registry = createRegistry()): Routes {
  const registry = registryOf(rpcs, more);
  const router = new PathRouter<Route>();
  const templates: PathTemplate[] = [];
  for (const rpc of rpcs) {
    for (const binding of readRestRules(rpc.method)) {
      const { httpMethod, template, body } = binding;
      const decode = requestDecoder(rpc.method.input, binding, valueLimits(rpc.maxRequestBytes), registry);
      router.add(httpMethod, template, { rpc, body, decode });
      templates.push(template);
    }
  }
  return { router, templates, registry };
}

function registryOf(rpcs: readonly Rpc[], more: Registry): Registry {
  const files = new Set<DescFile>([file_google_rpc_error_details, ...rpcs.map(({ method }) => method.parent.file)]);
  // A set is walked with what is added meanwhile.
  for (const { dependencies } of files) for (const dependency of dependencies) files.add(dependency);
  return createRegistry(...files, more);
}

/** A call over REST. To be made before the first await. */
export class RestCall extends FastifyCall {
  readonly #reply: FastifyReply;
  #controller: AbortController | undefined;
  #isAbandoned = false;

  constructor(request: FastifyRequest, reply: FastifyReply) {
    super(request, "rest");
    this.#reply = reply;
    reply.raw.on("close", () => {
      if (!reply.raw.writableEnded) this.#abandon();
    });
  }

  setHeader(name: string, value: string): void {
    this.#reply.header(name, value);
  }

  setTrailer(): void {}

  /** REST has no deadline. Made when first asked for, since few RPCs do. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#isAbandoned) this.#abandon();
    return this.#controller.signal;
  }

  #abandon(): void {
    this.#isAbandoned = true;
    this.#controller?.abort(new Error("the caller went away"));
  }
}

/**
 * Serves RPCs as REST: a request is decoded, given to `Rpc.invoke` and its answer encoded, with no other protocol between. An RPC
 * without an annotation has no REST path.
 *
 * The instance must have no prefix: annotations hold whole paths. Bodies are left to the routes (`answerErrors`).
 */
export function registerRest(fastify: FastifyInstance, routes: Routes, readBody: ReadBody): void {
  // Where Fastify hands over to the router: all below the first segment, which is literal.
  const mounts = new Set(routes.templates.map(({ segments: [first] }) => `/${first}/*`));
  // CORS answers OPTIONS.
  const method = fastify.supportedMethods.filter((one) => one !== "OPTIONS");
  const handler = serve(routes, readBody);
  for (const url of mounts) fastify.route({ method, url, exposeHeadRoute: false, handler });
}

function serve({ router, registry }: Routes, readBody: ReadBody) {
  const answer = async (call: RestCall, request: FastifyRequest): Promise<Json> => {
    const { path, query } = splitRequestTarget(request.raw.url ?? "");
    const { value: route, segments } = findRoute(router, request.method, path);
    const { rpc } = route;
    const admitted = await admit(rpc, call, request);
    const isEmpty = route.body.kind === "none" && hasNoBody(request.raw);
    const body = isEmpty ? NO_BODY : await readJsonBody(readBody, request.raw, route.body, rpc.maxRequestBytes);
    // While the body was on the wire, the caller may have been revoked.
    const principal = body === NO_BODY ? admitted : await rpc.admit(call);
    const response = await rpc.invoke(await route.decode({ segments, query, body }), principal, call);
    return encodeResponse(rpc.method.output, response, registry);
  };
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const call = new RestCall(request, reply);
    return sendJson(request, reply, await call.logged(answer(call, request)));
  };
}

/** The body of a request that is refused still flows, and is dropped: the connection is to take the next one. */
async function admit(rpc: Rpc, call: RestCall, { raw }: FastifyRequest): Promise<Principal> {
  try {
    return await rpc.admit(call);
  } catch (error) {
    raw.resume();
    throw error;
  }
}

function findRoute(router: PathRouter<Route>, method: string, path: string) {
  const found = router.find(method, path);
  if (found.kind === "found") return found;
  if (found.kind === "unknown") throw new HttpError("PATH_NOT_FOUND");
  throw new HttpError("METHOD_NOT_ALLOWED", { allow: found.allowed.join(", ") });
}

const JSON_MEDIA_TYPE = /^application\/json[ \t]*(?:;[ \t]*charset="?utf-8"?[ \t]*)?$/i;

/** Reads a request's body, which must be JSON. `limit` is in bytes. Rejects with a `Refusal`. */
async function readJsonBody(
  readBody: ReadBody,
  raw: IncomingMessage,
  rule: BodyRule,
  limit: number,
): Promise<Uint8Array> {
  if (rule.kind === "none") return readBody(raw, limit);
  const { "content-type": type, "content-encoding": encoding = "identity" } = raw.headers;
  // Even where the body is empty: a form on a foreign web page can send such a request without asking (CSRF).
  if (type !== undefined && !JSON_MEDIA_TYPE.test(type)) throw new HttpError("MEDIA_TYPE_NOT_SUPPORTED");
  if (encoding.toLowerCase() !== "identity") throw new HttpError("CONTENT_ENCODING_NOT_SUPPORTED");
  const bytes = await readBody(raw, limit);
  if (bytes.length > 0 && type === undefined) throw new HttpError("MEDIA_TYPE_NOT_SUPPORTED");
  return bytes;
}
