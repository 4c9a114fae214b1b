import type { DescMethod } from "@bufbuild/protobuf";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { Health } from "../../gen/health/v1/health_pb.js";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { DerivedKeysService } from "../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import { ImportedApiKeysService } from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { SelfServiceService } from "../../gen/keyhold/v2alpha1/self_service_pb.js";
import type { Policy } from "../domain/admin-scopes.ts";

const { method: issued } = IssuedApiKeysService;
const { method: imported } = ImportedApiKeysService;
const { method: keys } = ApiKeysService;

/** One row an RPC. An RPC without a row is refused. */
const POLICIES: ReadonlyMap<DescMethod, Policy> = new Map<DescMethod, Policy>([
  [issued.createIssuedApiKey, "keyhold:keys.write"],
  [issued.getIssuedApiKey, "keyhold:keys.read"],
  [issued.listIssuedApiKeys, "keyhold:keys.read"],
  [issued.updateIssuedApiKey, "keyhold:keys.write"],
  [issued.rotateIssuedApiKey, "keyhold:keys.write"],
  [imported.createImportedApiKey, "keyhold:keys.write"],
  [imported.batchCreateImportedApiKeys, "keyhold:keys.write"],
  [imported.getImportedApiKey, "keyhold:keys.read"],
  [imported.listImportedApiKeys, "keyhold:keys.read"],
  [imported.updateImportedApiKey, "keyhold:keys.write"],
  [imported.deleteImportedApiKey, "keyhold:keys.write"],
  [keys.deriveToken, "keyhold:derive"],
  [keys.verifyApiKey, "keyhold:verify"],
  [keys.batchVerifyApiKeys, "keyhold:verify"],
  [keys.revokeApiKey, "keyhold:keys.write"],
  [SelfServiceService.method.selfRevokeApiKey, "public"],
  [DerivedKeysService.method.getJwks, "public"],
  [Health.method.check, "probe"],
  [Health.method.watch, "probe"],
  // What it tells stands in the definitions that we publish.
  [ServerReflection.method.serverReflectionInfo, "public"],
  [ServerReflectionAlpha.method.serverReflectionInfo, "public"],
]);

export function policyOf(method: DescMethod): Policy | undefined {
  return POLICIES.get(method);
}
