import type { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import type { Principal } from "../../domain/principal.ts";
import { type BulkRequest, changeMany, requireFilter } from "../../keys/bulk.ts";
import type { BulkChange } from "../../keys/ports.ts";
import type { WorkControl } from "../../keys/time-box.ts";
import { noteKeys } from "../log-fields.ts";
import type { ApiContext, Handler, TableRow } from "../row.ts";
import type { Call } from "../rpc.ts";
import { revocationReason } from "./enums.ts";

type Method = typeof ApiKeysService.method;
type Selection = Omit<BulkRequest, "change">;

/** Ends early, with the progress stored, when nobody waits for it any more or the server stops. */
export function controlOf({ isStopping }: ApiContext, call: Call): WorkControl {
  return {
    mayContinue: () => !call.isAbandoned && !isStopping(),
    onChanged: (keyIds) => noteKeys(call.log, keyIds),
  };
}

function change(context: ApiContext, request: Selection, change: BulkChange, principal: Principal, call: Call) {
  return changeMany(context.keys, principal, { ...request, change }, controlOf(context, call));
}

const bulkRevoke =
  (context: ApiContext): Handler<Method["bulkRevokeApiKeys"]> =>
  (request, principal, call) => {
    const { revocationDescription: description = null } = request;
    const revocation = { verb: "revoke", reason: revocationReason(request.reason), description } as const;
    return change(context, request, revocation, principal, call);
  };

const bulkDisable =
  (context: ApiContext): Handler<Method["bulkDisableApiKeys"]> =>
  (request, principal, call) => {
    const { reason = null } = request;
    return change(context, request, { verb: "disable", reason }, principal, call);
  };

export const bulkRevokeApiKeys: TableRow<Method["bulkRevokeApiKeys"]> = {
  implement: bulkRevoke,
  check: ({ filter }, { keys }) => requireFilter(filter, keys.clock.now()),
  policy: "keyhold:keys.revoke",
  idempotency: "request_id",
};

export const bulkDisableApiKeys: TableRow<Method["bulkDisableApiKeys"]> = {
  implement: bulkDisable,
  check: ({ filter }, { keys }) => requireFilter(filter, keys.clock.now()),
  policy: "keyhold:keys.disable",
  idempotency: "request_id",
};
