import type { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import type { Principal } from "../../domain/principal.ts";
import { type BulkRequest, changeMany, requireFilter } from "../../keys/bulk.ts";
import type { BulkChange } from "../../keys/ports.ts";
import type { WorkControl } from "../../keys/time-box.ts";
import { noteKeys } from "../log-fields.ts";
import type { ApiContext, TableRow } from "../row.ts";
import type { Call } from "../rpc.ts";
import { revocationReason } from "./enums.ts";

type Method = typeof ApiKeysService.method;

/** Ends early, with the progress stored, when nobody waits for it any more or the server stops. */
export function controlOf({ isStopping }: ApiContext, call: Call): WorkControl {
  return {
    mayContinue: () => !call.isAbandoned && !isStopping(),
    onChanged: (keyIds) => noteKeys(call.log, keyIds),
  };
}

function changeBy(context: ApiContext, request: Omit<BulkRequest, "change">, change: BulkChange) {
  requireFilter(request.filter, context.keys.clock.now());
  return (principal: Principal, call: Call) =>
    changeMany(context.keys, principal, { ...request, change }, controlOf(context, call));
}

export const bulkRevokeApiKeys: TableRow<Method["bulkRevokeApiKeys"]> = {
  implement: (context) => (request) => {
    const { revocationDescription: description = null } = request;
    return changeBy(context, request, { verb: "revoke", reason: revocationReason(request.reason), description });
  },
  policy: "keyhold:keys.revoke",
  idempotency: "request_id",
};

export const bulkDisableApiKeys: TableRow<Method["bulkDisableApiKeys"]> = {
  implement: (context) => (request) => changeBy(context, request, { verb: "disable", reason: request.reason ?? null }),
  policy: "keyhold:keys.disable",
  idempotency: "request_id",
};
