import type { DescMethodUnary } from "@bufbuild/protobuf";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { DerivedKeysService } from "../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import { ImportedApiKeysService } from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { SelfServiceService } from "../../gen/keyhold/v2alpha1/self_service_pb.js";
import type { ApiContext, Handler } from "./handler.ts";
import { batchCreateImportedApiKeys } from "./v2alpha1/batch-create-imported-api-keys.ts";
import { batchVerifyApiKeys } from "./v2alpha1/batch-verify-api-keys.ts";
import { createImportedApiKey } from "./v2alpha1/create-imported-api-key.ts";
import { createIssuedApiKey } from "./v2alpha1/create-issued-api-key.ts";
import { deleteImportedApiKey } from "./v2alpha1/delete-imported-api-key.ts";
import { deriveToken } from "./v2alpha1/derive-token.ts";
import { getImportedApiKey } from "./v2alpha1/get-imported-api-key.ts";
import { getIssuedApiKey } from "./v2alpha1/get-issued-api-key.ts";
import { getJwks } from "./v2alpha1/get-jwks.ts";
import { listImportedApiKeys } from "./v2alpha1/list-imported-api-keys.ts";
import { listIssuedApiKeys } from "./v2alpha1/list-issued-api-keys.ts";
import { revokeApiKey } from "./v2alpha1/revoke-api-key.ts";
import { rotateIssuedApiKey } from "./v2alpha1/rotate-issued-api-key.ts";
import { selfRevokeApiKey } from "./v2alpha1/self-revoke-api-key.ts";
import { updateImportedApiKey } from "./v2alpha1/update-imported-api-key.ts";
import { updateIssuedApiKey } from "./v2alpha1/update-issued-api-key.ts";
import { verifyApiKey } from "./v2alpha1/verify-api-key.ts";

/** The services of `keyhold.v2alpha1`. */
export const SERVICES = [
  IssuedApiKeysService,
  ImportedApiKeysService,
  ApiKeysService,
  SelfServiceService,
  DerivedKeysService,
] as const;

const MIB = 1024 * 1024;

/** Largest request in bytes (contract §2). */
const MAX_REQUEST_BYTES = MIB;
const MAX_BATCH_REQUEST_BYTES = 16 * MIB;

/** Of calls that need no credential: what they can need, and no compression. */
const MAX_SELF_REVOKE_BYTES = 64 * 1024;
const MAX_EMPTY_BYTES = 4 * 1024;

export interface Implementation<M extends DescMethodUnary = DescMethodUnary> {
  readonly method: M;
  readonly handler: Handler<M>;
  readonly maxRequestBytes: number;
  readonly acceptsCompression?: boolean;
  /**
   * Whether it may have its answer in memory, and changes nothing: it is begun even when too many calls wait, and refused only if
   * it would have to wait too. By default it is taken for one that waits.
   */
  readonly mayAnswerFromCache?: boolean;
}

/** Every RPC with its implementation. */
export function implement(context: ApiContext): Implementation[] {
  const { method: issued } = IssuedApiKeysService;
  const { method: imported } = ImportedApiKeysService;
  const { method: keys } = ApiKeysService;
  return [
    rpc(issued.createIssuedApiKey, createIssuedApiKey(context)),
    rpc(issued.getIssuedApiKey, getIssuedApiKey(context)),
    rpc(issued.listIssuedApiKeys, listIssuedApiKeys(context)),
    rpc(issued.updateIssuedApiKey, updateIssuedApiKey(context)),
    rpc(issued.rotateIssuedApiKey, rotateIssuedApiKey(context)),
    rpc(imported.createImportedApiKey, createImportedApiKey(context)),
    rpc(imported.batchCreateImportedApiKeys, batchCreateImportedApiKeys(context), {
      maxRequestBytes: MAX_BATCH_REQUEST_BYTES,
    }),
    rpc(imported.getImportedApiKey, getImportedApiKey(context)),
    rpc(imported.listImportedApiKeys, listImportedApiKeys(context)),
    rpc(imported.updateImportedApiKey, updateImportedApiKey(context)),
    rpc(imported.deleteImportedApiKey, deleteImportedApiKey(context)),
    rpc(keys.deriveToken, deriveToken(context), { mayAnswerFromCache: true }),
    rpc(keys.verifyApiKey, verifyApiKey(context), { mayAnswerFromCache: true }),
    rpc(keys.batchVerifyApiKeys, batchVerifyApiKeys(context), { mayAnswerFromCache: true }),
    rpc(keys.revokeApiKey, revokeApiKey(context)),
    rpc(SelfServiceService.method.selfRevokeApiKey, selfRevokeApiKey(context), {
      maxRequestBytes: MAX_SELF_REVOKE_BYTES,
      acceptsCompression: false,
    }),
    rpc(DerivedKeysService.method.getJwks, getJwks(context), {
      maxRequestBytes: MAX_EMPTY_BYTES,
      acceptsCompression: false,
      mayAnswerFromCache: true,
    }),
  ];
}

function rpc<M extends DescMethodUnary>(
  method: M,
  handler: Handler<M>,
  options: Partial<Omit<Implementation, "method" | "handler">> = {},
): Implementation {
  return { method, handler, maxRequestBytes: MAX_REQUEST_BYTES, ...options };
}
