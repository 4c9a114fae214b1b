import { create, toBinary } from "@bufbuild/protobuf";
import { CheckResponseSchema } from "../../../gen/envoy/service/auth/v3/ext_authz_pb.js";
import type { CheckedRequest } from "../../api/envoy/check-request.ts";
import type { CheckAnswer } from "../../api/envoy/check-response.ts";
import { memoize } from "../../lib/memoize.ts";
import { type Check, EXT_AUTHZ, MAX_CHECK_BYTES } from "../gateways/ext-authz.ts";
import type { CallCounters } from "../pipeline/call-metrics.ts";
import type { FastRoute } from "./call.ts";
import { GRPC_TYPES, grpcForm } from "./protocols.ts";

/** Returns the routes of Envoy's ext_authz over gRPC, by content type. */
export function extAuthzRoutes(check: Check, counters: CallCounters): ReadonlyMap<string, FastRoute> {
  const route: FastRoute<CheckedRequest, CheckAnswer> = {
    ...grpcForm(MAX_CHECK_BYTES, { read: check.read, write }),
    rpc: check,
    name: EXT_AUTHZ,
    counter: counters.of(EXT_AUTHZ, "grpc"),
  };
  return new Map(GRPC_TYPES.map((type) => [type, route as FastRoute]));
}

const write = memoize((answer: CheckAnswer) => toBinary(CheckResponseSchema, create(CheckResponseSchema, answer)));
