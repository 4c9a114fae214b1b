import type { DescMethod, DescMethodUnary, DescService, Message } from "@bufbuild/protobuf";
import { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { AuditService } from "../../../gen/keyhold/v2alpha1/audit_pb.js";
import { DerivedKeysService } from "../../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import { HmacKeysService } from "../../../gen/keyhold/v2alpha1/hmac_keys_pb.js";
import { ImportedApiKeysService } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeysService } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { SelfServiceService } from "../../../gen/keyhold/v2alpha1/self_service_pb.js";
import { KeyholdError } from "../../domain/errors.ts";
import type { Principal } from "../../domain/principal.ts";
import { recover } from "../../lib/maybe-promise.ts";
import type { ApiContext, Handler, Implementation, RpcRow, ServiceRows, TableRow } from "../row.ts";
import type { Call } from "../rpc.ts";
import { apiKeys } from "./api-keys.ts";
import { audit } from "./audit.ts";
import { hmacKeys } from "./hmac-keys.ts";
import { importedApiKeys } from "./imported-api-keys.ts";
import { issuedApiKeys } from "./issued-api-keys.ts";
import { derivedKeys, selfService } from "./public.ts";

export const SERVICES = [
  IssuedApiKeysService,
  ImportedApiKeysService,
  HmacKeysService,
  ApiKeysService,
  SelfServiceService,
  DerivedKeysService,
  AuditService,
] as const;

const ROWS: ReadonlyMap<DescMethod, RpcRow> = new Map([
  ...tableOf(IssuedApiKeysService, issuedApiKeys),
  ...tableOf(ImportedApiKeysService, importedApiKeys),
  ...tableOf(HmacKeysService, hmacKeys),
  ...tableOf(ApiKeysService, apiKeys),
  ...tableOf(SelfServiceService, selfService),
  ...tableOf(DerivedKeysService, derivedKeys),
  ...tableOf(AuditService, audit),
]);

function tableOf<S extends DescService>({ methods }: S, rows: ServiceRows<S>): [DescMethod, RpcRow][] {
  const byName = new Map<string, RpcRow>(Object.entries(rows));
  return methods.flatMap((method) => {
    const row = byName.get(method.localName);
    return row === undefined ? [] : [[method, row]];
  });
}

export function rowOf(method: DescMethod): RpcRow | undefined {
  return ROWS.get(method);
}

/** Implements the unary RPCs. */
export function implementRpcs(context: ApiContext): Implementation[] {
  return [...ROWS].flatMap(([method, row]) => {
    if (!isUnary(method)) return [];
    const { implement, ...rest } = row as TableRow;
    const handler = implement(context);
    // No call that may answer from the cache is denied by its handler.
    return [{ ...rest, method, handler: rest.mayAnswerFromCache ? handler : reportingDenials(handler, context) }];
  });
}

function reportingDenials(handler: Handler<DescMethodUnary>, { onDenied }: Pick<ApiContext, "onDenied">) {
  return (request: Message) => {
    const execute = handler(request);
    return (principal: Principal, call: Call) =>
      recover(
        () => execute(principal, call),
        (error): never => {
          if (error instanceof KeyholdError && error.code === "CALLER_NOT_PERMITTED") onDenied(principal);
          throw error;
        },
      );
  };
}

function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === "unary";
}
