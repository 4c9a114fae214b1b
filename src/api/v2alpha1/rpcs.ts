import type { DescMethod, DescMethodUnary, DescService } from "@bufbuild/protobuf";
import { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { DerivedKeysService } from "../../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import { ImportedApiKeysService } from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeysService } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { SelfServiceService } from "../../../gen/keyhold/v2alpha1/self_service_pb.js";
import { pageSizeOf } from "../../keys/list.ts";
import type { ApiContext } from "../handler.ts";
import { costOfItems, type Implementation, type ServiceRows, type TableRow } from "../row.ts";
import { batchCreateImportedApiKeys } from "./batch-create-imported-api-keys.ts";
import { batchVerifyApiKeys } from "./batch-verify-api-keys.ts";
import { createImportedApiKey } from "./create-imported-api-key.ts";
import { createIssuedApiKey } from "./create-issued-api-key.ts";
import { deleteImportedApiKey } from "./delete-imported-api-key.ts";
import { deriveToken } from "./derive-token.ts";
import { getImportedApiKey } from "./get-imported-api-key.ts";
import { getIssuedApiKey } from "./get-issued-api-key.ts";
import { getJwks } from "./get-jwks.ts";
import { listImportedApiKeys } from "./list-imported-api-keys.ts";
import { listIssuedApiKeys } from "./list-issued-api-keys.ts";
import { revokeApiKey } from "./revoke-api-key.ts";
import { rotateIssuedApiKey } from "./rotate-issued-api-key.ts";
import { selfRevokeApiKey } from "./self-revoke-api-key.ts";
import { updateImportedApiKey } from "./update-imported-api-key.ts";
import { updateIssuedApiKey } from "./update-issued-api-key.ts";
import { verifyApiKey } from "./verify-api-key.ts";

const KIB = 1024;
const MIB = 1024 * KIB;

const issued: ServiceRows<typeof IssuedApiKeysService> = {
  createIssuedApiKey: {
    implement: createIssuedApiKey,
    policy: "keyhold:keys.write",
    idempotency: "request_id",
    keyId: (_, { issuedApiKey }) => issuedApiKey?.keyId,
  },
  getIssuedApiKey: {
    implement: getIssuedApiKey,
    policy: "keyhold:keys.read",
    idempotency: "no side effects",
    keyId: (_, { keyId }) => keyId,
  },
  listIssuedApiKeys: {
    implement: listIssuedApiKeys,
    policy: "keyhold:keys.read",
    idempotency: "no side effects",
    cost: ({ pageSize }) => costOfItems(pageSizeOf(pageSize)),
  },
  updateIssuedApiKey: {
    implement: updateIssuedApiKey,
    policy: "keyhold:keys.write",
    idempotency: "idempotent",
    keyId: (_, { keyId }) => keyId,
  },
  rotateIssuedApiKey: {
    implement: rotateIssuedApiKey,
    policy: "keyhold:keys.write",
    idempotency: "none",
    keyId: (_, { issuedApiKey }) => issuedApiKey?.keyId,
  },
};

const imported: ServiceRows<typeof ImportedApiKeysService> = {
  createImportedApiKey: {
    implement: createImportedApiKey,
    policy: "keyhold:keys.write",
    idempotency: "request_id",
    keyId: (_, { keyId }) => keyId,
  },
  // Logs its keys itself, because there may be many.
  batchCreateImportedApiKeys: {
    implement: batchCreateImportedApiKeys,
    policy: "keyhold:keys.write",
    idempotency: "request_id",
    maxRequestBytes: 16 * MIB,
    cost: ({ requests }) => costOfItems(requests.length),
  },
  getImportedApiKey: {
    implement: getImportedApiKey,
    policy: "keyhold:keys.read",
    idempotency: "no side effects",
    keyId: (_, { keyId }) => keyId,
  },
  listImportedApiKeys: {
    implement: listImportedApiKeys,
    policy: "keyhold:keys.read",
    idempotency: "no side effects",
    cost: ({ pageSize }) => costOfItems(pageSizeOf(pageSize)),
  },
  updateImportedApiKey: {
    implement: updateImportedApiKey,
    policy: "keyhold:keys.write",
    idempotency: "idempotent",
    keyId: (_, { keyId }) => keyId,
  },
  deleteImportedApiKey: {
    implement: deleteImportedApiKey,
    policy: "keyhold:keys.write",
    idempotency: "idempotent",
    keyId: ({ keyId }) => keyId,
  },
};

/** RPCs that verify a credential log the verdict with the key themselves. */
const apiKeys: ServiceRows<typeof ApiKeysService> = {
  deriveToken: {
    implement: deriveToken,
    policy: "keyhold:derive",
    idempotency: "none",
    mayAnswerFromCache: true,
  },
  verifyApiKey: {
    implement: verifyApiKey,
    policy: "keyhold:verify",
    idempotency: "idempotent",
    mayAnswerFromCache: true,
  },
  batchVerifyApiKeys: {
    implement: batchVerifyApiKeys,
    policy: "keyhold:verify",
    idempotency: "idempotent",
    mayAnswerFromCache: true,
    cost: ({ requests }) => costOfItems(requests.length),
  },
  revokeApiKey: {
    implement: revokeApiKey,
    policy: "keyhold:keys.write",
    idempotency: "none",
    keyId: (_, { keyId }) => keyId,
  },
};

/** Unauthenticated RPCs accept small, uncompressed bodies only. */
const selfService: ServiceRows<typeof SelfServiceService> = {
  selfRevokeApiKey: {
    implement: selfRevokeApiKey,
    policy: "public",
    idempotency: "none",
    maxRequestBytes: 64 * KIB,
    acceptsCompression: false,
    keyId: (_, { keyId }) => keyId,
  },
};

const derivedKeys: ServiceRows<typeof DerivedKeysService> = {
  getJwks: {
    implement: getJwks,
    policy: "public",
    idempotency: "no side effects",
    maxRequestBytes: 4 * KIB,
    acceptsCompression: false,
    mayAnswerFromCache: true,
  },
};

/** The services of `keyhold.v2alpha1`. */
export const SERVICES = [
  IssuedApiKeysService,
  ImportedApiKeysService,
  ApiKeysService,
  SelfServiceService,
  DerivedKeysService,
] as const;

/** Every RPC of `SERVICES` with its row. */
const RPCS: readonly (readonly [DescMethodUnary, TableRow])[] = [
  ...tableOf(IssuedApiKeysService, issued),
  ...tableOf(ImportedApiKeysService, imported),
  ...tableOf(ApiKeysService, apiKeys),
  ...tableOf(SelfServiceService, selfService),
  ...tableOf(DerivedKeysService, derivedKeys),
];

const BY_METHOD: ReadonlyMap<DescMethod, TableRow> = new Map(RPCS);

function tableOf<S extends DescService>({ methods }: S, rows: ServiceRows<S>): [DescMethodUnary, TableRow][] {
  const byName = new Map<string, TableRow>(Object.entries(rows));
  return methods.filter(isUnary).flatMap((method) => {
    const row = byName.get(method.localName);
    return row === undefined ? [] : [[method, row]];
  });
}

function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === "unary";
}

/** Returns the row of an RPC of this API. */
export function rowOf(method: DescMethod): TableRow | undefined {
  return BY_METHOD.get(method);
}

/** Returns every RPC with its handler. */
export function implementRpcs(context: ApiContext): Implementation[] {
  return RPCS.map(([method, { implement, ...row }]) => ({ ...row, method, handler: implement(context) }));
}
