import { createHash, randomBytes } from "node:crypto";
import type { MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { HashAlgorithm } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import { ApiKeysService, TokenAlgorithm } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { TextEncoding } from "../../../gen/keyhold/v2alpha1/hmac_keys_pb.js";
import {
  type CreateImportedApiKeyRequestSchema,
  type ImportedApiKeySchema,
  ImportedApiKeysService,
  type RawKeyHashSchema,
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

/** Imports a key of which only a hash is known over the tested protocol: by default its SHA-256. */
export async function importHashed(
  call: CallRpc,
  { prefix = "", ...hash }: MessageInitShape<typeof RawKeyHashSchema> = {},
) {
  const rawKey = newRawKey();
  const value = createHash("sha256").update(`${prefix}${rawKey}`).digest("hex");
  const rawKeyHash = { algorithm: HashAlgorithm.SHA256, value, encoding: TextEncoding.HEX, prefix, ...hash };
  const request = { ...draft(), rawKeyHash: { ...rawKeyHash, $typeName: undefined } };
  return { ...(await call(ImportedApiKeysService.method.createImportedApiKey, request)), rawKey };
}

/** Returns a request to import a key of which only a slow hash is known. */
export function slowHashed(lookupPrefix: string): MessageInitShape<typeof CreateImportedApiKeyRequestSchema> {
  const [salt, output] = [16, 32].map((size) => randomBytes(size).toString("base64").replaceAll("=", ""));
  return { ...draft(), rawKeyHash: { phc: `$scrypt$ln=10,r=8,p=1$${salt}$${output}` }, lookupPrefix };
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
