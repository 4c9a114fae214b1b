import type { ConnectError } from "@connectrpc/connect";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Authorize, GatewayRequest } from "../../api/gateways/authorize.ts";
import { failed, type GatewayDecision } from "../../api/gateways/decision.ts";
import type { Call } from "../../api/rpc.ts";
import { GATEWAY_SCOPE } from "../../auth/gateway-callers.ts";
import type { Guard } from "../../auth/guard.ts";
import { invalidArgument } from "../../domain/errors.ts";
import type { ClientAddressOf } from "../../lib/client-address.ts";
import { createPipeline, type Pipeline } from "../call-pipeline.ts";
import type { ConcurrencyLimiter } from "../concurrency-limiter.ts";
import { RestCall } from "../rest/call.ts";
import { type ForwardAuthTarget, isForwardAuth, readTarget } from "./forward-auth-target.ts";

/** Its name in the log, metrics and traces. */
export const FORWARD_AUTH = "keyhold.v2alpha1.Gateways/ForwardAuth";

/** The header of the gateway's own token. `Authorization` is the client's. */
export const GATEWAY_TOKEN_HEADER = "x-keyhold-authorization";

/** Processes the requests of gateways. */
export type ForwardAuthPipeline = Pipeline<GatewayRequest, GatewayDecision>;

/** Receives the status of every decision. */
export type OnDecision = (status: GatewayDecision["status"]) => void;

export interface ForwardAuth {
  readonly pipeline: ForwardAuthPipeline;
  /** Finds the client of a gateway. */
  readonly clientAddressOf: ClientAddressOf;
  readonly onDecision: OnDecision;
}

/** Decorates the decision about a client's request with the authorization of the gateway, load shedding and the error table. */
export function createForwardAuth(
  authorize: Authorize,
  guard: Guard,
  limiter: ConcurrencyLimiter,
): ForwardAuthPipeline {
  const endpoint = {
    name: FORWARD_AUTH,
    method: { name: "ForwardAuth" },
    policy: GATEWAY_SCOPE,
    mayAnswerFromCache: true,
    handler: authorize,
  } as const;
  return createPipeline(endpoint, guard, limiter);
}

/**
 * Answers the requests of gateways ahead of every route, in every method, because a gateway may pass the one of its client: nothing else,
 * such as a preflight response of CORS, may be taken for a decision.
 */
export function registerForwardAuth(
  fastify: FastifyInstance,
  { pipeline, clientAddressOf, onDecision }: ForwardAuth,
): void {
  const decide = async (call: RestCall, { raw }: FastifyRequest): Promise<GatewayDecision> => {
    try {
      const caller = await pipeline.admit(call);
      return await pipeline.invoke(
        new ForwardAuthRequest(raw.url ?? "", raw.rawHeaders, call, clientAddressOf),
        caller,
        call,
      );
    } catch (error) {
      return failed(error as ConnectError);
    }
  };
  const serve = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const call = new RestCall(reply);
    const decision = await call.logged(decide(call, request));
    onDecision(decision.status);
    send(reply, decision);
    // The body is not read, but drained, so that the connection can serve the next request.
    request.raw.resume();
  };
  fastify.addHook("onRequest", (request, reply, next) => {
    if (isForwardAuth(request.raw.url ?? "")) serve(request, reply).catch(next);
    else next();
  });
}

function send(reply: FastifyReply, { status, headers, body }: GatewayDecision): void {
  reply.code(status).header("content-length", Buffer.byteLength(body));
  for (const [name, value] of headers) reply.header(name, value);
  reply.send(body === "" ? undefined : body);
}

/** Headers in which gateways send the URI of the client: Caddy and Traefik, nginx by convention, ingress-nginx. */
const URI_HEADERS = ["x-forwarded-uri", "x-original-uri", "x-original-url"] as const;

const NONE: readonly string[] = [];

/** The request of a client, by the headers that the gateway has passed. */
class ForwardAuthRequest implements GatewayRequest {
  readonly #target: ForwardAuthTarget;
  readonly #fields: readonly string[];
  readonly #call: Call;
  readonly #clientAddressOf: ClientAddressOf;

  /** `fields` are names and values in turn. Throws `INVALID_ARGUMENT`. */
  constructor(target: string, fields: readonly string[], call: Call, clientAddressOf: ClientAddressOf) {
    this.#target = readTarget(target);
    this.#fields = fields;
    this.#call = call;
    this.#clientAddressOf = clientAddressOf;
    this.#requireOwnQuery();
  }

  get requiredScopes() {
    return this.#target.requiredScopes;
  }

  get audience() {
    return this.#target.audience;
  }

  get clientIp() {
    return this.#clientAddressOf(this.#call.peerAddress, this.#call.header("x-forwarded-for"));
  }

  /** From the fields as received: Node drops the second of two `Authorization` fields. */
  header(name: string): readonly string[] {
    let values: string[] | undefined;
    for (let at = 0; at + 1 < this.#fields.length; at += 2) {
      const field = this.#fields[at] ?? "";
      if (field.length !== name.length || field.toLowerCase() !== name) continue;
      values ??= [];
      values.push(this.#fields[at + 1] ?? "");
    }
    return values ?? NONE;
  }

  get originalUri() {
    if (this.#target.clientUri !== undefined) return this.#target.clientUri;
    const [uri, ...others] = new Set(URI_HEADERS.flatMap((name) => this.header(name)).map(withoutOrigin));
    if (others.length > 0) throw invalidArgument("headers", `name two different URIs: ${URI_HEADERS.join(", ")}`);
    return uri;
  }

  /** Some gateways keep the client's query if the configured URL has none. */
  #requireOwnQuery(): void {
    const { query } = this.#target;
    if (query === "") return;
    const isForeign = URI_HEADERS.some((name) => this.header(name).some((uri) => queryOf(uri) === query));
    if (isForeign) throw invalidArgument("query", "is the client's: configure the gateway to send its own");
  }
}

function withoutOrigin(uri: string): string {
  return uri.replace(/^https?:\/\/[^/?#]*/i, "");
}

function queryOf(uri: string): string | undefined {
  const start = uri.indexOf("?");
  return start === -1 ? undefined : uri.slice(start + 1);
}
