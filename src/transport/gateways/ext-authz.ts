import { toBinary } from "@bufbuild/protobuf";
import {
  Authorization,
  CheckRequestSchema,
  type CheckResponseSchema,
} from "../../../gen/envoy/service/auth/v3/ext_authz_pb.js";
import { type CheckedRequest, decodeCheckRequest } from "../../api/envoy/check-request.ts";
import { answerTo, type CheckAnswer } from "../../api/envoy/check-response.ts";
import { EnvoyRequest } from "../../api/envoy/gateway-request.ts";
import { failed, type GatewayDecision } from "../../api/gateways/decision.ts";
import type { Call, Pipeline, Rpc } from "../../api/rpc.ts";
import { GATEWAY_SCOPE } from "../../auth/gateway-callers.ts";
import { type Principal, UNRESTRICTED } from "../../domain/principal.ts";
import type { ClientAddressByEnvoy } from "../../lib/client-address.ts";
import { andThen, type MaybePromise, recover } from "../../lib/maybe-promise.ts";
import type { Tracing } from "../../observability/tracing.ts";
import { createPipeline } from "../pipeline/call-pipeline.ts";
import type { ConcurrencyLimiter } from "../pipeline/concurrency-limiter.ts";
import { valueLimits } from "../wire/json/parse.ts";
import { decodeBinary } from "../wire/protobuf.ts";
import { codeOfStatus, rpcName } from "../wire/protocol.ts";
import type { GatewayProtocol } from "./forward-auth.ts";

const method = Authorization.method.check;

export const EXT_AUTHZ = rpcName({ method });

/** The headers of the gateway's own token: the metadata of a call are not its client's. */
export const EXT_AUTHZ_TOKEN_HEADERS = ["authorization", "x-keyhold-authorization"] as const;

/** Envoy accepts 60 KiB of headers by default. */
export const MAX_CHECK_BYTES = 2 ** 20;

/** Answers checks. No function throws or rejects. */
export interface Check extends Pipeline<CheckedRequest, CheckAnswer> {
  /** Reads the message of an admitted call. That of a denied gateway is not read; a malformed one is denied. */
  read(bytes: Uint8Array, call: Call): CheckedRequest;
}

/** In place of a message that was not read. */
const UNREAD: CheckedRequest = { isHttp: false, source: "", path: "", fields: [], extensions: {} };

/**
 * Creates the check of requests that Envoy asks about. Whatever fails, also the authorization of the gateway, is a denial and no error of the
 * RPC, which Envoy lets pass with `failure_mode_allow`.
 */
export function createCheck(
  { authorize, guard, clientAddressOf, onDecision }: GatewayProtocol<ClientAddressByEnvoy>,
  limiter: ConcurrencyLimiter,
  tracing: Tracing | undefined,
): Check {
  const handler = (checked: CheckedRequest) => authorize(new EnvoyRequest(checked, clientAddressOf));
  const endpoint = { name: EXT_AUTHZ, method, policy: GATEWAY_SCOPE, mayAnswerFromCache: true, handler };
  const pipeline = createPipeline(endpoint, guard, limiter, tracing);
  const denials = new WeakMap<Call, GatewayDecision>();
  const admit = (call: Call): MaybePromise<Principal> => {
    const deny = (error: unknown): Principal => {
      denials.set(call, failed(error));
      return DENIED;
    };
    // A call with a slow body is admitted twice.
    return denials.has(call) ? DENIED : recover(() => pipeline.admit(call), deny);
  };
  const decide = (checked: CheckedRequest, caller: Principal, call: Call): MaybePromise<GatewayDecision> => {
    const work = () => andThen(pipeline.invoke(checked, caller, call), (decision) => logCode(decision, call));
    return denials.get(call) ?? recover(work, failed);
  };
  const invoke = (checked: CheckedRequest, caller: Principal, call: Call): MaybePromise<CheckAnswer> =>
    andThen(decide(checked, caller, call), (decision) => {
      onDecision(decision.status);
      return answerTo(decision, checked.fields);
    });
  const read: Check["read"] = (bytes, call) => {
    if (denials.has(call)) return UNREAD;
    try {
      return decodeBinary(CheckRequestSchema, bytes, LIMITS, decodeCheckRequest);
    } catch (error) {
      const denial = failed(error);
      denials.set(call, logCode(denial, call));
      return UNREAD;
    }
  };
  return { admit, invoke, read };
}

const LIMITS = valueLimits(MAX_CHECK_BYTES);

/** The pipeline has logged the code of a failure. */
function logCode(decision: GatewayDecision, call: Call): GatewayDecision {
  if (decision.status !== 200) call.log.add({ code: codeOfStatus(decision.status) });
  return decision;
}

/** The caller of a call that is answered with a denial. */
const DENIED: Principal = Object.freeze({
  ...{ subject: "anonymous", method: "none", scopes: [], restrictions: UNRESTRICTED },
  ...{ clientAddress: "", userAgent: "", callId: "", rpc: "", peerAddress: "" },
});

/** Returns the RPC `envoy.service.auth.v3.Authorization/Check`. */
export function checkRpc(check: Check): Rpc<typeof CheckRequestSchema, typeof CheckResponseSchema> {
  const checked = new WeakMap<Call, CheckedRequest>();
  return {
    method,
    maxRequestBytes: MAX_CHECK_BYTES,
    admit: check.admit,
    readBinary: (bytes, call) => void checked.set(call, check.read(bytes, call)),
    invoke: (request, caller, call) =>
      check.invoke(checked.get(call) ?? check.read(toBinary(CheckRequestSchema, request), call), caller, call),
  };
}
