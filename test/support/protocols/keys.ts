import type { MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { ApiKeysService, TokenAlgorithm } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import {
  type CreateImportedApiKeyRequestSchema,
  type ImportedApiKeySchema,
  ImportedApiKeysService,
} from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import {
  type CreateIssuedApiKeyRequestSchema,
  IssuedApiKeysService,
} from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { answered, type CallRpc } from "./call.ts";
import { unique } from "./normal-form.ts";

/** The default request of `issued`. */
export function draft(): {
  name: string;
  actorId: string;
  scopes: string[];
  metadata: Record<string, string>;
  ttl: string;
} {
  return { name: "a key", actorId: unique("actor"), scopes: ["read", "write"], metadata: { team: "a" }, ttl: "1h" };
}

/** Returns a unique raw key whose last four characters are always the same. */
export function newRawKey(): string {
  return `${unique("raw")}-tail`;
}

/** Issues a key over the tested protocol. */
export async function issued(call: CallRpc, change: MessageInitShape<typeof CreateIssuedApiKeyRequestSchema> = {}) {
  const request = { ...draft(), ...change, $typeName: undefined };
  const { secret, issuedApiKey } = answered(await call(IssuedApiKeysService.method.createIssuedApiKey, request));
  return { secret: secret ?? "", keyId: issuedApiKey?.keyId ?? "", actorId: issuedApiKey?.actorId ?? "" };
}

/** Imports a key over the tested protocol. */
export async function imported(
  call: CallRpc,
  change: MessageInitShape<typeof CreateImportedApiKeyRequestSchema> = {},
): Promise<MessageShape<typeof ImportedApiKeySchema> & { rawKey: string }> {
  const request = { ...draft(), rawKey: newRawKey(), ...change, $typeName: undefined };
  const key = answered(await call(ImportedApiKeysService.method.createImportedApiKey, request));
  return { ...key, rawKey: request.rawKey };
}

/** Derives a token over the tested protocol. */
export async function derived(
  call: CallRpc,
  credential: string,
  customClaims = {},
  audience: string[] = [],
): Promise<string> {
  const request = { credential, algorithm: TokenAlgorithm.JWT, customClaims, audience };
  return answered(await call(ApiKeysService.method.deriveToken, request)).token?.token ?? "";
}
