import { create, type DescEnum, type Message, type MessageInitShape, toBinary, toJson } from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { KeyStatusSchema } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import {
  ApiKeysService,
  type BatchVerifyApiKeysRequest,
  BatchVerifyApiKeysRequestSchema,
  type BatchVerifyApiKeysResponseSchema,
  CredentialTypeSchema,
  VerificationErrorSchema,
  type VerifyApiKeyRequest,
  VerifyApiKeyRequestSchema,
  type VerifyApiKeyResponseSchema,
} from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import type { Implementation } from "../../api/row.ts";
import type { Rpc } from "../../api/rpc.ts";
import { decodeUtf8 } from "../../lib/bytes.ts";
import { memoize } from "../../lib/memoize.ts";
import { valueLimits } from "../wire/json/parse.ts";
import { readJsonMessage } from "../wire/json/reader.ts";
import { readBinaryMessage } from "../wire/protobuf.ts";

/** What an RPC returns; it need not be a message yet. */
export type Response = MessageInitShape<Implementation["method"]["output"]>;

/** The request and response messages of an RPC as bytes. */
export interface Codec<Body extends string | Uint8Array = string | Uint8Array> {
  /** Throws `INVALID_ARGUMENT`. */
  read(bytes: Uint8Array): Message;
  write(response: Response): Body;
}

export type ProtoCodec = Codec<Uint8Array>;

/** An RPC that the fast path serves, and its messages in JSON and in Protobuf's binary form. */
export interface FastRpc {
  readonly rpc: Rpc;
  readonly json: Codec;
  readonly proto: ProtoCodec;
}

const { verifyApiKey, batchVerifyApiKeys } = ApiKeysService.method;

/** Returns the RPCs that the fast path serves: verification, and nothing that changes anything. */
export function verificationRpcs(rpcs: readonly Rpc[]): FastRpc[] {
  return rpcs.flatMap((rpc): FastRpc[] => {
    const proto = protoCodec(rpc);
    switch (rpc.method) {
      case verifyApiKey: {
        const read = (bytes: Uint8Array) => readVerifyProto(bytes, proto.read);
        return [{ rpc, json: { read: readVerifyJson, write: writeVerifyJson }, proto: { ...proto, read } }];
      }
      case batchVerifyApiKeys:
        return [{ rpc, json: { read: readBatchVerifyJson, write: writeBatchVerifyJson }, proto }];
      default:
        return [];
    }
  });
}

/** Returns the codec of Protobuf's binary form. Memoizable responses are encoded once. */
export function protoCodec({ method: { input, output }, maxRequestBytes }: Rpc): ProtoCodec {
  const limits = valueLimits(maxRequestBytes);
  return {
    read: (bytes) => readBinaryMessage(input, bytes, limits),
    write: memoize((response: Response) => toBinary(output, create(output, response))),
  };
}

const SPACE = "[ \\t\\n\\r]*";
/** A JSON string without escapes (RFC 8259 §7). */
const INNER = '"[^"\\\\\\u0000-\\u001f]*"';
const STRING = '"([^"\\\\\\u0000-\\u001f]*)"';
/** `{"credential": "…"` */
const CREDENTIAL = ["\\{", '"credential"', ":", STRING].join(SPACE);
/** `{"credential": "…"}` */
const ITEM = [CREDENTIAL, "\\}"].join(SPACE);

/** The start of a request, through the white space after its credential. */
const HEAD = new RegExp([`^${SPACE}${CREDENTIAL}`, ""].join(SPACE));
/**
 * At most as many strings as `required_scopes` may have, in one group. Between two runs of white space there is always a character that is
 * required: two adjacent runs would try every division of the white space, in quadratic time.
 */
const STRINGS = `\\[${SPACE}(?:(${INNER}(?:${SPACE},${SPACE}${INNER}){0,31})${SPACE})?\\]`;
const optional = (name: string, value: string) => `(?:${[",", `"(?:${name})"`, ":", value, ""].join(SPACE)})?`;
/** The rest: where the credential is presented, in the order of the fields. Apart from the start, which is longest, so as to read that once. */
const TAIL = new RegExp(
  [
    optional("client_ip|clientIp", STRING),
    optional("required_scopes|requiredScopes", STRINGS),
    optional("audience", STRING),
    `\\}${SPACE}$`,
  ].join(""),
  "y",
);
const BETWEEN_STRINGS = new RegExp(`"${SPACE},${SPACE}"`);
const LIST_START = new RegExp(["^", "\\{", '"requests"', ":", "\\[", ""].join(SPACE));
const NEXT_ITEM = new RegExp(`${ITEM}${SPACE}([,\\]])${SPACE}`, "y");
const LIST_END = new RegExp(`\\}${SPACE}$`, "y");

/** Neither takes a body of more than 1 MiB. */
const LIMITS = valueLimits(0);

/** Reads the JSON of a `VerifyApiKeyRequest`: the usual text directly, any other as the complete path does. */
export function readVerifyJson(bytes: Uint8Array): VerifyApiKeyRequest {
  return usualRequest(decodeUtf8(bytes) ?? "") ?? readJsonMessage(VerifyApiKeyRequestSchema, bytes, LIMITS);
}

/** Returns undefined if the text is not of the usual form. */
function usualRequest(text: string): VerifyApiKeyRequest | undefined {
  const [head, credential = ""] = HEAD.exec(text) ?? [];
  if (head === undefined) return undefined;
  TAIL.lastIndex = head.length;
  const [tail, clientIp, scopes, audience] = TAIL.exec(text) ?? [];
  if (tail === undefined) return undefined;
  const request = verifyRequest(credential);
  if (clientIp !== undefined) request.clientIp = clientIp;
  if (scopes) request.requiredScopes = scopes.slice(1, -1).split(BETWEEN_STRINGS);
  if (audience !== undefined) request.audience = audience;
  return request;
}

/** Reads the JSON of a `BatchVerifyApiKeysRequest` likewise. */
export function readBatchVerifyJson(bytes: Uint8Array): BatchVerifyApiKeysRequest {
  const requests = listOf(decodeUtf8(bytes) ?? "");
  if (requests === undefined) return readJsonMessage(BatchVerifyApiKeysRequestSchema, bytes, LIMITS);
  const message = create(BatchVerifyApiKeysRequestSchema);
  message.requests = requests;
  return message;
}

/** The tag of the field `credential`: number 1, length-delimited (https://protobuf.dev/programming-guides/encoding/). */
const CREDENTIAL_TAG = 0x0a;
/** Lengths up to here take one byte. */
const MAX_SHORT = 0x7f;

/** Reads the binary form of a `VerifyApiKeyRequest`: the one field of a usual length directly, anything else by `readAny`. */
export function readVerifyProto(bytes: Uint8Array, readAny: Codec["read"]): Message {
  const length = bytes.length - 2;
  const isUsual = bytes[0] === CREDENTIAL_TAG && bytes[1] === length && length <= MAX_SHORT;
  const credential = isUsual ? decodeUtf8(bytes.subarray(2)) : undefined;
  return credential ? verifyRequest(credential) : readAny(bytes);
}

function verifyRequest(credential: string): VerifyApiKeyRequest {
  const message = create(VerifyApiKeyRequestSchema);
  message.credential = credential;
  return message;
}

/** Returns undefined unless the text is a list of at least one item, each of the usual form. */
function listOf(text: string): VerifyApiKeyRequest[] | undefined {
  const start = LIST_START.exec(text);
  if (start === null) return undefined;
  const requests: VerifyApiKeyRequest[] = [];
  NEXT_ITEM.lastIndex = start[0].length;
  for (;;) {
    const end = NEXT_ITEM.lastIndex;
    const [match, credential = "", separator] = NEXT_ITEM.exec(text) ?? [];
    if (match === undefined) return undefined;
    requests.push(verifyRequest(credential));
    if (separator === "]") {
      LIST_END.lastIndex = end + match.length;
      return LIST_END.test(text) ? requests : undefined;
    }
  }
}

type Verification = MessageInitShape<typeof VerifyApiKeyResponseSchema>;
type Verifications = MessageInitShape<typeof BatchVerifyApiKeysResponseSchema>;

/** Writes a `VerifyApiKeyResponse` as `JSON.stringify(toJson(…))` would, without a message in between; memoizable ones once. */
export const writeVerifyJson = memoize((verification: Verification): string => {
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
  });
});

/** Writes a `BatchVerifyApiKeysResponse` likewise. */
export function writeBatchVerifyJson({ results = [] }: Verifications): string {
  return `{"results":[${results.map(writeVerifyJson).join(",")}]}`;
}

/** Returns the name of an enum value, or the number of one that has no name. */
function nameIn({ value: known }: DescEnum, value: number | undefined): string | number | undefined {
  return value === undefined ? undefined : (known[value]?.name ?? value);
}
