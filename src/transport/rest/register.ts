import { createRegistry, type DescFile, type Registry } from "@bufbuild/protobuf";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { file_google_rpc_error_details } from "../../../gen/google/rpc/error_details_pb.js";
import type { Rpc } from "../../api/rpc.ts";
import { type BodyRule, readBindings } from "./binding.ts";
import { errorHandlerWith } from "./error-response.ts";
import { PathRouter } from "./path-router.ts";
import type { PathTemplate } from "./path-template.ts";
import { Refusal } from "./refusal.ts";
import { readJsonBody } from "./request-body.ts";
import { type DecodeRequest, requestDecoder } from "./request-decoder.ts";
import { type EncodeResponse, responseEncoder, sendJson } from "./response.ts";
import { RestCall } from "./rest-call.ts";

export interface RestOptions {
  /** Types for `google.protobuf.Any` and error details, besides those of the RPCs' files and what they import. */
  readonly registry?: Registry;
}

interface Route {
  readonly rpc: Rpc;
  readonly body: BodyRule;
  readonly decode: DecodeRequest;
  readonly encode: EncodeResponse;
}

/**
 * Serves RPCs as REST, by the `google.api.http` annotations of their methods (google/api/http.proto): a request is decoded, given
 * to `Rpc.invoke` and its answer encoded, with no other protocol between. An RPC without an annotation has no REST path.
 * Throws `Error` if an annotation is wrong or two bindings collide.
 *
 * The instance must have no prefix: annotations hold whole paths.
 */
export function registerRest(fastify: FastifyInstance, rpcs: readonly Rpc[], options: RestOptions = {}): void {
  const registry = registryOf(rpcs, options.registry);
  const { router, mounts, httpMethods } = makeRoutes(rpcs, registry);
  for (const method of httpMethods) {
    if (!fastify.supportedMethods.includes(method)) fastify.addHttpMethod(method, { hasBody: true });
  }
  // CORS answers OPTIONS, unless a binding is for it.
  const methods = fastify.supportedMethods.filter((method) => method !== "OPTIONS" || httpMethods.has(method));
  fastify.register(async (instance) => {
    instance.removeAllContentTypeParsers();
    instance.addContentTypeParser("*", (_request, _payload, done) => done(null));
    instance.setErrorHandler(errorHandlerWith(registry));
    const handler = serve(router);
    for (const url of mounts) instance.route({ method: methods, url, exposeHeadRoute: false, handler });
  });
}

interface Routes {
  readonly router: PathRouter<Route>;
  /** Where Fastify hands over to `router`. */
  readonly mounts: ReadonlySet<string>;
  readonly httpMethods: ReadonlySet<string>;
}

function makeRoutes(rpcs: readonly Rpc[], registry: Registry): Routes {
  const router = new PathRouter<Route>();
  const mounts = new Set<string>();
  const httpMethods = new Set<string>();
  for (const rpc of rpcs) {
    const { input, output } = rpc.method;
    for (const binding of readBindings(rpc.method)) {
      const { httpMethod, template, body, responseBody } = binding;
      const decode = requestDecoder(input, binding, registry);
      router.add(httpMethod, template, { rpc, body, decode, encode: responseEncoder(output, responseBody, registry) });
      mounts.add(mountOf(template));
      if (httpMethod !== "*") httpMethods.add(httpMethod);
    }
  }
  return { router, mounts, httpMethods };
}

/** All below the first segment, where that is a plain word and not the only one. */
function mountOf({ segments: [first, second] }: PathTemplate): string {
  const isPrefix = first?.kind === "literal" && second !== undefined && /^[\w.-]+$/.test(first.text);
  return isPrefix ? `/${first.text}/*` : "/*";
}

function serve(router: PathRouter<Route>) {
  return async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const call = new RestCall(request, reply);
    const { path, query } = splitUrl(request.raw.url ?? "");
    const { route, segments } = findRoute(router, request.method, path);
    await admit(route.rpc, call, request);
    const body = await readJsonBody(request.raw, route.body, route.rpc.maxRequestBytes);
    const response = await route.rpc.invoke(route.decode({ segments, query, body }), call);
    return sendJson(request, reply, route.encode(response));
  };
}

/** The body of a request that is refused still flows, and is dropped: the connection is to take the next one. */
async function admit(rpc: Rpc, call: RestCall, { raw }: FastifyRequest): Promise<void> {
  try {
    await rpc.admit(call);
  } catch (error) {
    raw.resume();
    throw error;
  }
}

function findRoute(router: PathRouter<Route>, method: string, path: string) {
  const found = router.find(method, path);
  switch (found.kind) {
    case "found":
      return { route: found.value, segments: found.segments };
    case "wrong-method":
      throw new Refusal("METHOD_NOT_ALLOWED", { allow: found.allowed.join(", ") });
    case "unknown":
      throw new Refusal("PATH_NOT_FOUND");
  }
}

/** Origin form or absolute form (RFC 9112 §3.2), both still percent-encoded. */
const REQUEST_TARGET = /^(?:[a-z][a-z\d+.-]*:\/\/[^/?#]*)?([^?#]*)(?:\?([^#]*))?/i;

function splitUrl(url: string): { path: string; query: string } {
  const [, path = "", query = ""] = REQUEST_TARGET.exec(url) ?? [];
  return { path, query };
}

function registryOf(rpcs: readonly Rpc[], more: Registry = createRegistry()): Registry {
  const files = new Set<DescFile>([file_google_rpc_error_details]);
  for (const { method } of rpcs) addWithImports(files, method.parent.file);
  return createRegistry(...files, more);
}

function addWithImports(files: Set<DescFile>, file: DescFile): void {
  if (files.has(file)) return;
  files.add(file);
  for (const dependency of file.dependencies) addWithImports(files, dependency);
}
