import { create, type DescEnum, type Message, type MessageInitShape, toBinary, toJson } from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { KeyStatusSchema } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import {
  ApiKeysService,
  type BatchVerifyApiKeysRequest,
  BatchVerifyApiKeysRequestSchema,
  type BatchVerifyApiKeysResponseSchema,
  CredentialTypeSchema,
  LimitStatusSchema,
  VerificationErrorSchema,
  type VerifyApiKeyRequest,
  VerifyApiKeyRequestSchema,
  VerifyApiKeyResponseSchema,
} from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import type { Implementation } from "../../api/row.ts";
import type { Call, Rpc } from "../../api/rpc.ts";
import type { Verification } from "../../api/v2alpha1/verification.ts";
import { isJsonObject, type JsonValue, parseJson } from "../../lib/json.ts";
import { memoizeFirst } from "../../lib/memoize.ts";
import { decodeUtf8 } from "../../lib/utf8.ts";
import { writeJson } from "../rest/response.ts";
import { valueLimits } from "../wire/json/parse.ts";
import { JSON_OPTIONS, readJsonMessage } from "../wire/json/reader.ts";
import { readBinaryMessage } from "../wire/protobuf.ts";
import { answersOf, encodeOnce } from "./kept-answer.ts";
import { encodeStates, limitStatesOf, writeStatesJson } from "./limit-states.ts";

/** What an RPC returns; it need not be a message yet. */
export type Response = MessageInitShape<Implementation["method"]["output"]>;

/** The request and response messages of an RPC as bytes. */
export interface Codec<Body extends string | Uint8Array = string | Uint8Array, Req = Message, Res = Response> {
  /** Throws `INVALID_ARGUMENT`. */
  read(bytes: Uint8Array, call: Call): Req;
  write(response: Res): Body;
}

/** An RPC that the fast path serves, and its messages in JSON and in Protobuf's binary form. */
export interface FastRpc {
  readonly rpc: Rpc;
  readonly json: Codec;
  readonly proto: Codec<Uint8Array>;
}

const { verifyApiKey, batchVerifyApiKeys, deriveToken } = ApiKeysService.method;

/** Returns the RPCs that the fast path serves: verification, derivation, and nothing that changes anything. */
export function toFastRpcs(rpcs: readonly Rpc[]): FastRpc[] {
  return rpcs.flatMap((rpc): FastRpc[] => {
    const proto = protoCodec(rpc);
    switch (rpc.method) {
      case verifyApiKey: {
        const read = (bytes: Uint8Array) => readVerifyProto(bytes, proto.read);
        const json = { read: readVerifyJson, write: writeVerifyJson };
        return [{ rpc, json, proto: { read, write: writeVerifyProto } }];
      }
      case batchVerifyApiKeys:
        return [{ rpc, json: { read: readBatchVerifyJson, write: writeBatchVerifyJson }, proto }];
      case deriveToken:
        return [{ rpc, json: jsonCodec(rpc), proto }];
      default:
        return [];
    }
  });
}

function jsonCodec({ method: { input, output }, maxRequestBytes }: Rpc): Codec<string> {
  const limits = valueLimits(maxRequestBytes);
  return {
    read: (bytes) => readJsonMessage(input, bytes, limits),
    write: (response) => writeJson(output, response),
  };
}

/** Returns the codec of Protobuf's binary form. */
export function protoCodec({ method: { input, output }, maxRequestBytes }: Rpc) {
  const limits = valueLimits(maxRequestBytes);
  const encode = (response: Response) => toBinary(output, create(output, response));
  return {
    read: (bytes: Uint8Array): Message => readBinaryMessage(input, bytes, limits),
    write: encode,
  };
}

/** Neither RPC takes a body of more than 1 MiB. */
const LIMITS = valueLimits(0);

/** A request with a credential only, as `JSON.stringify` writes it: a third faster than `JSON.parse`. */
const CREDENTIAL_ONLY = /^\{"credential": ?"([ !#-[\]-~]*)"\}$/;

/** Reads the JSON of a `VerifyApiKeyRequest`: common forms directly, any other like the fallback. */
export function readVerifyJson(bytes: Uint8Array): VerifyApiKeyRequest {
  const text = textOf(bytes);
  const credential = CREDENTIAL_ONLY.exec(text)?.[1];
  const request = credential === undefined ? toRequest(parseJson(text)) : verifyRequest(credential);
  return request ?? readJsonMessage(VerifyApiKeyRequestSchema, bytes, LIMITS);
}

/** Reads the JSON of a `BatchVerifyApiKeysRequest` likewise. */
export function readBatchVerifyJson(bytes: Uint8Array): BatchVerifyApiKeysRequest {
  const requests = toRequests(parseJson(textOf(bytes)));
  if (requests === undefined) return readJsonMessage(BatchVerifyApiKeysRequestSchema, bytes, LIMITS);
  const message = create(BatchVerifyApiKeysRequestSchema);
  message.requests = requests;
  return message;
}

/** Larger bodies are left to the fallback, which counts their values before it parses them. Bytes. */
const MAX_PARSED = 2 ** 17;
/** Fewer than the fallback accepts. */
const MAX_ITEMS = 4_096;
const MAX_SCOPES = 32;

/** Returns an empty text for a body that is left to the fallback. */
function textOf(bytes: Uint8Array): string {
  return bytes.length > MAX_PARSED ? "" : (decodeUtf8(bytes) ?? "");
}

function toRequests(json: JsonValue | undefined): VerifyApiKeyRequest[] | undefined {
  if (!isJsonObject(json) || Object.keys(json).length !== 1 || !Array.isArray(json.requests)) return undefined;
  if (json.requests.length > MAX_ITEMS) return undefined;
  const requests: VerifyApiKeyRequest[] = [];
  for (const item of json.requests) {
    const request = toRequest(item);
    if (request === undefined) return undefined;
    requests.push(request);
  }
  return requests;
}

/** Returns undefined for a request that has other fields or values than are common. */
function toRequest(json: JsonValue | undefined): VerifyApiKeyRequest | undefined {
  if (!isJsonObject(json)) return undefined;
  const request = verifyRequest("");
  for (const name in json) {
    const value = json[name];
    if (name === "credential" && isText(value)) request.credential = value;
    else if (name === "client_ip" && isText(value)) request.clientIp = value;
    else if (name === "audience" && isText(value)) request.audience = value;
    else if (name === "required_scopes" && isTexts(value)) request.requiredScopes = value;
    else return undefined;
  }
  return request;
}

function isText(value: JsonValue | undefined): value is string {
  return typeof value === "string" && value.isWellFormed();
}

function isTexts(value: JsonValue | undefined): value is string[] {
  return Array.isArray(value) && value.length <= MAX_SCOPES && value.every(isText);
}

/** The tag of the field `credential`: number 1, length-delimited (https://protobuf.dev/programming-guides/encoding/). */
const CREDENTIAL_TAG = 0x0a;
/** Lengths up to here take one byte. */
const MAX_SHORT = 0x7f;

/** Reads the binary form of a `VerifyApiKeyRequest`: a short credential directly, anything else by `readAny`. */
export function readVerifyProto(bytes: Uint8Array, readAny: (bytes: Uint8Array) => Message): Message {
  const length = bytes.length - 2;
  const isShort = bytes[0] === CREDENTIAL_TAG && bytes[1] === length && length <= MAX_SHORT;
  const credential = isShort ? decodeUtf8(bytes.subarray(2)) : undefined;
  return credential ? verifyRequest(credential) : readAny(bytes);
}

function verifyRequest(credential: string): VerifyApiKeyRequest {
  const message = create(VerifyApiKeyRequestSchema);
  message.credential = credential;
  return message;
}

type Verifications = MessageInitShape<typeof BatchVerifyApiKeysResponseSchema>;

/** Writes a `VerifyApiKeyResponse` in binary form; that to a cached verdict once, without the states of limits: messages may be concatenated. */
export function writeVerifyProto(verification: Verification): Uint8Array {
  const states = limitStatesOf(verification);
  const { accepted } = verification;
  if (accepted !== undefined) {
    return Buffer.concat([encodeIdentity(accepted), encodeDenial(verification), encodeStates(states)]);
  }
  const known = encodeOnce(verification, "PROTO", encodeUnlimited);
  return states.length === 0 ? known : Buffer.concat([known, encodeStates(states)]);
}

/** Bytes of `is_valid`, the first field. */
const IS_VALID_SIZE = 2;

/** Returns what a response to a valid credential has after `is_valid`. */
function encodeIdentity(accepted: Verification): Uint8Array {
  return encodeOnce(accepted, "PROTO", encodeUnlimited).subarray(IS_VALID_SIZE);
}

function encodeDenial({ errorCode, errorMessage, missingScopes, stale }: Verification): Uint8Array {
  const denial = { isValid: false, errorCode, errorMessage, missingScopes, stale };
  return toBinary(VerifyApiKeyResponseSchema, create(VerifyApiKeyResponseSchema, denial));
}

function encodeUnlimited(verification: Verification): Uint8Array {
  const message = create(VerifyApiKeyResponseSchema, verification);
  if ("limitStates" in verification) message.limits = [];
  return toBinary(VerifyApiKeyResponseSchema, message);
}

/** The start of every answer to a valid credential, and the end of most, which are not kept with each. */
const VALID_START = '{"is_valid":true,';
const endsOf = memoizeFirst(4, (issuer) =>
  CredentialTypeSchema.values.map(
    ({ name }) => `,"issuer":${JSON.stringify(issuer)},"credential_type":"${name}","missing_scopes":[],"limits":[`,
  ),
);

/** Closes the list of limits, and the response. */
const END = "]}";

/** Writes a `VerifyApiKeyResponse` as `JSON.stringify(toJson(…))` would, without a message in between. */
export function writeVerifyJson(verification: Verification): string {
  const json = writeDenied(verification) ?? writeUnlimited(verification);
  return json + writeStatesJson(limitStatesOf(verification)) + END;
}

/** The end of a response that has no claims, before the states of limits. */
const NO_SCOPES = '"missing_scopes":[],"limits":[';

/** Writes a denial, up to the states of limits, from the response that an accepted credential has; undefined if that has other fields than most. */
function writeDenied(verification: Verification): string | undefined {
  const { accepted, errorCode, errorMessage, missingScopes = [], stale } = verification;
  if (accepted === undefined || stale === true) return undefined;
  const json = writeUnlimited(accepted);
  if (!json.startsWith(VALID_START) || !json.endsWith(NO_SCOPES)) return undefined;
  const identity = json.slice(VALID_START.length, -NO_SCOPES.length);
  const error = `"error_code":"${nameIn(VerificationErrorSchema, errorCode)}","error_message":${JSON.stringify(errorMessage)}`;
  return `{"is_valid":false,${identity}${error},"missing_scopes":${JSON.stringify(missingScopes)},"limits":[`;
}

/** Writes a response up to the states of limits; that to a cached verdict once. */
function writeUnlimited(verification: Verification): string {
  const answers = answersOf(verification);
  if (answers === undefined) return toVerifyJson(verification).slice(0, -END.length);
  const end = endsOf(verification.issuer ?? "")[verification.credentialType ?? 0] ?? "";
  const known = answers.answer("JSON");
  // What is kept without its start and end begins with a name.
  if (known !== undefined) return known[0] === 0x22 ? VALID_START + known.toString() + end : known.toString();
  const json = toVerifyJson(verification).slice(0, -END.length);
  const isUsual = json.startsWith(VALID_START) && json.endsWith(end);
  answers.keep("JSON", Buffer.from(isUsual ? json.slice(VALID_START.length, -end.length) : json));
  return json;
}

function toVerifyJson(verification: Verification): string {
  const { expireTime } = verification;
  return JSON.stringify({
    is_valid: verification.isValid ?? false,
    key_id: verification.keyId,
    actor_id: verification.actorId,
    scopes: verification.scopes ?? [],
    metadata: verification.metadata ?? {},
    status: nameIn(KeyStatusSchema, verification.status),
    expire_time: expireTime && toJson(TimestampSchema, create(TimestampSchema, expireTime)),
    issuer: verification.issuer,
    credential_type: nameIn(CredentialTypeSchema, verification.credentialType),
    error_code: nameIn(VerificationErrorSchema, verification.errorCode),
    error_message: verification.errorMessage,
    stale: verification.stale,
    missing_scopes: verification.missingScopes ?? [],
    claims: verification.claims,
    limits: otherLimits(verification),
  });
}

/** The states of limits in a response of the service are added later. */
function otherLimits(verification: Verification): JsonValue {
  const { limits = [] } = verification;
  if (limits.length === 0 || "limitStates" in verification) return [];
  return limits.map((status) => toJson(LimitStatusSchema, create(LimitStatusSchema, status), JSON_OPTIONS));
}

/** Writes a `BatchVerifyApiKeysResponse` likewise. */
export function writeBatchVerifyJson({ results = [] }: Verifications): string {
  return `{"results":[${results.map(writeVerifyJson).join(",")}]}`;
}

/** Returns the name of an enum value, or its number if it has no name. */
function nameIn({ value: values }: DescEnum, value: number | undefined): string | number | undefined {
  return value === undefined ? undefined : (values[value]?.name ?? value);
}
