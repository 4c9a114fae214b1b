import type { DescMethod, DescMethodServerStreaming, DescMethodUnary, DescService } from "@bufbuild/protobuf";
import { ActorsService } from "../../../gen/keyhold/v2alpha1/actors_pb.js";
import { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { AuditService } from "../../../gen/keyhold/v2alpha1/audit_pb.js";
import { CallersService } from "../../../gen/keyhold/v2alpha1/callers_pb.js";
import { DerivedKeysService } from "../../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import { HmacKeysService } from "../../../gen/keyhold/v2alpha1/hmac_keys_pb.js";
import { ImportedApiKeysService } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeysService } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { KeyPagesService } from "../../../gen/keyhold/v2alpha1/key_pages_pb.js";
import { SelfServiceService } from "../../../gen/keyhold/v2alpha1/self_service_pb.js";
import { UsageService } from "../../../gen/keyhold/v2alpha1/usage_pb.js";
import { WebhookEndpointsService } from "../../../gen/keyhold/v2alpha1/webhooks_pb.js";
import { isForChanges, isPermitted } from "../../domain/admin-scopes.ts";
import { KeyholdError } from "../../domain/errors.ts";
import { ALL_KEY_PAGE_SCOPES } from "../../domain/key-page.ts";
import { type Principal, type Restrictions, requireUnrestricted } from "../../domain/principal.ts";
import { andThen, type MaybePromise, recover } from "../../lib/maybe-promise.ts";
import type {
  ApiContext,
  Handler,
  Implementation,
  RpcRow,
  ServiceRows,
  StreamImplementation,
  StreamRow,
  TableRow,
} from "../row.ts";
import { actors } from "./actors.ts";
import { apiKeys } from "./api-keys.ts";
import { audit } from "./audit.ts";
import { callers } from "./callers.ts";
import { hmacKeys } from "./hmac-keys.ts";
import { importedApiKeys } from "./imported-api-keys.ts";
import { issuedApiKeys } from "./issued-api-keys.ts";
import { keyPages } from "./key-pages.ts";
import { derivedKeys, selfService } from "./public.ts";
import { usage } from "./usage.ts";
import { webhookEndpoints } from "./webhooks.ts";

export const SERVICES = [
  IssuedApiKeysService,
  ImportedApiKeysService,
  HmacKeysService,
  ApiKeysService,
  SelfServiceService,
  DerivedKeysService,
  AuditService,
  UsageService,
  ActorsService,
  WebhookEndpointsService,
  CallersService,
  KeyPagesService,
] as const;

const ROWS: ReadonlyMap<DescMethod, RpcRow> = new Map([
  ...tableOf(IssuedApiKeysService, issuedApiKeys),
  ...tableOf(ImportedApiKeysService, importedApiKeys),
  ...tableOf(HmacKeysService, hmacKeys),
  ...tableOf(ApiKeysService, apiKeys),
  ...tableOf(SelfServiceService, selfService),
  ...tableOf(DerivedKeysService, derivedKeys),
  ...tableOf(AuditService, audit),
  ...tableOf(UsageService, usage),
  ...tableOf(ActorsService, actors),
  ...tableOf(WebhookEndpointsService, webhookEndpoints),
  ...tableOf(CallersService, callers),
  ...tableOf(KeyPagesService, keyPages),
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

/** The rows by the name of the RPC, `package.Service/Method`, in alphabetical order. */
const ROWS_BY_NAME: readonly (readonly [string, RpcRow])[] = [...ROWS]
  .map(([{ parent, name }, row]) => [`${parent.typeName}/${name}`, row] as const)
  .sort(([a], [b]) => (a < b ? -1 : 1));

/** Returns the names of the RPCs that a caller may call, in alphabetical order. */
export function permittedRpcs({ scopes, restrictions }: Pick<Principal, "scopes" | "restrictions">): readonly string[] {
  const isUnrestricted = restrictions.actorIds === null;
  return ROWS_BY_NAME.flatMap(([name, row]) =>
    isPermitted(scopes, row.policy) &&
    (isUnrestricted || row.unrestricted === undefined) &&
    isOnKeyPage(row, restrictions)
      ? [name]
      : [],
  );
}

/** Returns whether a session of the key page permits an RPC; true for every other caller. */
function isOnKeyPage(
  { policy, keyPage: needed }: Pick<RpcRow, "policy" | "keyPage">,
  { keyPage }: Restrictions,
): boolean {
  if (keyPage === undefined || needed === "VIEW" || isPermitted([], policy)) return true;
  return needed !== undefined && keyPage.permissions.includes(needed);
}

/** Implements the unary RPCs. */
export function implementRpcs(context: ApiContext): Implementation[] {
  return [...ROWS].flatMap(([method, row]) => {
    if (method.methodKind !== "unary") return [];
    const { implement, ...rest } = row as TableRow;
    const handler = limitingChanges(restricting(implement(context), rest), rest, context);
    // No call that may answer from the cache is denied by its handler.
    const reporting = rest.mayAnswerFromCache ? handler : reportingDenials(handler, context);
    return [{ ...rest, method: method as DescMethodUnary, handler: reporting }];
  });
}

/** Implements the server-streaming RPCs. */
export function implementStreams(context: ApiContext): StreamImplementation[] {
  return [...ROWS].flatMap(([method, row]) => {
    if (method.methodKind !== "server_streaming") return [];
    const { implement, ...rest } = row as StreamRow;
    const handler = reportingDenials(restricting(implement(context), rest), context);
    return [{ ...rest, method: method as DescMethodServerStreaming, handler }];
  });
}

/** A revocation or disabling of one key is never denied: it must not wait in an incident. */
function limitingChanges(
  handler: Handler<DescMethodUnary>,
  { policy, idempotency, isReserved, imports }: RpcRow,
  { admitChange }: Pick<ApiContext, "admitChange">,
): Handler<DescMethodUnary> {
  if (!isForChanges(policy) || idempotency === "no side effects" || isReserved === true) return handler;
  return (request) => {
    const execute = handler(request);
    const [limit, cost] = imports === undefined ? (["changes", 1] as const) : (["imports", imports(request)] as const);
    return (principal, call) => andThen(admitChange(limit, principal, cost), () => execute(principal, call));
  };
}

/** Denies calls that a row forbids to restricted callers, after errors of the request. */
function restricting<Request, Rest extends readonly unknown[], Response>(
  handler: (request: Request) => (principal: Principal, ...rest: Rest) => MaybePromise<Response>,
  row: Pick<RpcRow, "policy" | "unrestricted" | "keyPage">,
) {
  const { policy, unrestricted } = row;
  // No session of the key page has another scope, and those calls need not look for one.
  if (unrestricted === undefined && !isPermitted(ALL_KEY_PAGE_SCOPES, policy)) return handler;
  return (request: Request) => {
    const execute = handler(request);
    return (principal: Principal, ...rest: Rest) => {
      if (!isOnKeyPage(row, principal.restrictions)) {
        throw new KeyholdError("CALLER_NOT_PERMITTED", "the session of the key page does not permit this call");
      }
      if (unrestricted !== undefined) requireUnrestricted(principal, unrestricted);
      return execute(principal, ...rest);
    };
  };
}

function reportingDenials<Request, Rest extends readonly unknown[], Response>(
  handler: (request: Request) => (principal: Principal, ...rest: Rest) => MaybePromise<Response>,
  { onDenied }: Pick<ApiContext, "onDenied">,
) {
  return (request: Request) => {
    const execute = handler(request);
    return (principal: Principal, ...rest: Rest) =>
      recover(
        () => execute(principal, ...rest),
        (error): never => {
          if (error instanceof KeyholdError && error.code === "CALLER_NOT_PERMITTED") onDenied(principal);
          throw error;
        },
      );
  };
}
