import {
  Authorization,
  type CheckRequestSchema,
  type CheckResponseSchema,
} from "../../../gen/envoy/service/auth/v3/external_auth_pb.js";
import { type CheckedRequest, readCheckRequest } from "../../api/envoy/check-request.ts";
import { answerTo, type CheckAnswer } from "../../api/envoy/check-response.ts";
import { EnvoyRequest } from "../../api/envoy/gateway-request.ts";
import type { Authorize } from "../../api/gateways/authorize.ts";
import { failed, type GatewayDecision, type OnDecision } from "../../api/gateways/decision.ts";
import type { Call, Rpc } from "../../api/rpc.ts";
import { GATEWAY_SCOPE } from "../../auth/gateway-callers.ts";
import type { Guard } from "../../auth/guard.ts";
import type { Principal } from "../../domain/principal.ts";
import { UNRESTRICTED } from "../../domain/principal.ts";
import type { ClientAddressByEnvoy } from "../../lib/client-address.ts";
import { andThen, type MaybePromise } from "../../lib/maybe-promise.ts";
import { codeOfStatus, rpcName } from "../call-metrics.ts";
import { createPipeline, type Pipeline } from "../call-pipeline.ts";
import type { ConcurrencyLimiter } from "../concurrency-limiter.ts";

const method = Authorization.method.check;

/** Its name in the log, metrics and traces. */
export const EXT_AUTHZ = rpcName({ method });

/** The headers of the gateway's own token: the metadata of a call are not its client's. */
export const EXT_AUTHZ_TOKEN_HEADERS = ["authorization", "x-keyhold-authorization"] as const;

/** Envoy accepts 60 KiB of headers by default. */
const MAX_REQUEST_BYTES = 2 ** 20;

/** Decides about requests that Envoy asks about. */
export type ExtAuthzPipeline = Pipeline<CheckedRequest, GatewayDecision>;

/** Decorates the decision about a client's request with the authorization of the gateway, load shedding and the error table. */
export function createExtAuthz(
  authorize: Authorize,
  clientAddressOf: ClientAddressByEnvoy,
  guard: Guard,
  limiter: ConcurrencyLimiter,
): ExtAuthzPipeline {
  const endpoint = {
    name: EXT_AUTHZ,
    method,
    policy: GATEWAY_SCOPE,
    mayAnswerFromCache: true,
    handler: (checked: CheckedRequest, caller: Principal, call: Call) =>
      authorize(new EnvoyRequest(checked, clientAddressOf), caller, call),
  } as const;
  return createPipeline(endpoint, guard, limiter);
}

/** Answers a check. Never throws or rejects. */
export type Check = (checked: CheckedRequest, call: Call) => MaybePromise<CheckAnswer>;

/**
 * Returns the answers of `Check`. Whatever fails is a denial and no error of the RPC, which Envoy lets pass with `failure_mode_allow`.
 * Gateways are authorized here too, because the refusal of one is a denial.
 */
export function createCheck(pipeline: ExtAuthzPipeline, onDecision: OnDecision): Check {
  const decide = (checked: CheckedRequest, call: Call): MaybePromise<GatewayDecision> => {
    try {
      const decided = andThen(pipeline.admit(call), (caller) => pipeline.invoke(checked, caller, call));
      return decided instanceof Promise
        ? decided.then((one) => logCode(one, call)).catch(failed)
        : logCode(decided, call);
    } catch (error) {
      return failed(error);
    }
  };
  return (checked, call) =>
    andThen(decide(checked, call), (decision) => {
      onDecision(decision.status);
      return answerTo(decision, checked.fields);
    });
}

/** The pipeline has logged the code of a failure. */
function logCode(decision: GatewayDecision, call: Call): GatewayDecision {
  if (decision.status !== 200) call.log.add({ code: codeOfStatus(decision.status) });
  return decision;
}

/** The caller before it is known. */
export const ANYONE: Principal = Object.freeze({
  ...{ subject: "anonymous", method: "none", scopes: [], restrictions: UNRESTRICTED },
  ...{ clientAddress: "", userAgent: "", callId: "" },
});

/** Returns the RPC `envoy.service.auth.v3.Authorization/Check`. */
export function checkRpc(check: Check): Rpc<typeof CheckRequestSchema, typeof CheckResponseSchema> {
  return {
    method,
    maxRequestBytes: MAX_REQUEST_BYTES,
    admit: () => ANYONE,
    invoke: (request, _, call) => check(readCheckRequest(request), call),
  };
}
