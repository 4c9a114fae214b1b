import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Authorize } from "../../api/gateways/authorize.ts";
import { failed, type GatewayDecision, type OnDecision } from "../../api/gateways/decision.ts";
import { GATEWAY_SCOPE } from "../../auth/gateway-callers.ts";
import type { Guard } from "../../auth/guard.ts";
import type { ClientAddressOf } from "../../lib/client-address.ts";
import type { Tracing } from "../../observability/tracing.ts";
import { createPipeline } from "../pipeline/call-pipeline.ts";
import type { ConcurrencyLimiter } from "../pipeline/concurrency-limiter.ts";
import { RestCall } from "../wire/fastify-call.ts";
import { ForwardAuthRequest, isForwardAuth } from "./forward-auth-request.ts";

export const FORWARD_AUTH = "keyhold.v2alpha1.Gateways/ForwardAuth";

/** The header of the gateway's own token. `Authorization` is the client's. */
export const GATEWAY_TOKEN_HEADER = "x-keyhold-authorization";

/** A protocol of gateways: who may ask, how the address of the client is found, and who decides. */
export interface GatewayProtocol<AddressOf> {
  readonly authorize: Authorize;
  readonly guard: Guard;
  readonly clientAddressOf: AddressOf;
  readonly onDecision: OnDecision;
}

export type ForwardAuth = ReturnType<typeof createForwardAuth>;

/** Decorates the decision about a client's request with the authorization of the gateway, load shedding and the error table. */
export function createForwardAuth(
  { authorize, guard, clientAddressOf, onDecision }: GatewayProtocol<ClientAddressOf>,
  limiter: ConcurrencyLimiter,
  tracing: Tracing | undefined,
) {
  const method = { name: "ForwardAuth" };
  const endpoint = { name: FORWARD_AUTH, method, policy: GATEWAY_SCOPE, mayAnswerFromCache: true, handler: authorize };
  return { pipeline: createPipeline(endpoint, guard, limiter, tracing), clientAddressOf, onDecision };
}

/**
 * Answers the requests of gateways ahead of every route, in every method, because a gateway may pass the method of its client. No other response,
 * such as that to a preflight request of CORS, may be mistaken for a decision.
 */
export function registerForwardAuth(
  fastify: FastifyInstance,
  { pipeline, clientAddressOf, onDecision }: ForwardAuth,
): void {
  const decide = async (call: RestCall, { raw }: FastifyRequest): Promise<GatewayDecision> => {
    try {
      const caller = await pipeline.admit(call);
      return await pipeline.invoke(new ForwardAuthRequest(raw.url ?? "", call, clientAddressOf), caller, call);
    } catch (error) {
      return failed(error);
    }
  };
  const serve = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const call = new RestCall(reply);
    const { status, headers, limitHeaders = [], body } = await call.logged(decide(call, request));
    onDecision(status);
    reply.code(status).header("content-length", Buffer.byteLength(body));
    for (const [name, value] of [...headers, ...limitHeaders]) reply.header(name, value);
    reply.send(body === "" ? undefined : body);
    // The body is not read, but drained, so that the connection can serve the next request.
    request.raw.resume();
  };
  fastify.addHook("onRequest", (request, reply, next) => {
    if (isForwardAuth(request.raw.url ?? "")) serve(request, reply).catch(next);
    else next();
  });
}
