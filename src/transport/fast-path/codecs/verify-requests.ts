import { create } from "@bufbuild/protobuf";
import {
  type BatchVerifyApiKeysRequest,
  BatchVerifyApiKeysRequestSchema,
  type VerifyApiKeyRequest,
  VerifyApiKeyRequestSchema,
} from "../../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { readJsonMessage } from "../../rest/json-message.ts";
import { valueLimits } from "../../rest/strict-json.ts";

const SPACE = "[ \\t\\n\\r]*";
/** A JSON string without escapes (RFC 8259 §7). */
const STRING = '"([^"\\\\\\u0000-\\u001f]*)"';
/** `{"credential": "…"}` */
const ITEM = ["\\{", '"credential"', ":", STRING, "\\}"].join(SPACE);

const SINGLE = new RegExp(`^${SPACE}${ITEM}${SPACE}$`);
const LIST_START = new RegExp(["^", "\\{", '"requests"', ":", "\\[", ""].join(SPACE));
const NEXT_ITEM = new RegExp(`${ITEM}${SPACE}([,\\]])${SPACE}`, "y");
const LIST_END = new RegExp(`\\}${SPACE}$`, "y");

/** Neither takes a body of more than 1 MiB. */
const LIMITS = valueLimits(0);

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Reads the JSON of a `VerifyApiKeyRequest`: the usual text directly, any other as the complete path does. */
export function readVerifyJson(bytes: Uint8Array): VerifyApiKeyRequest {
  const credential = SINGLE.exec(textOf(bytes))?.[1];
  return credential === undefined
    ? readJsonMessage(VerifyApiKeyRequestSchema, bytes, LIMITS)
    : verifyRequest(credential);
}

/** Reads the JSON of a `BatchVerifyApiKeysRequest` likewise. */
export function readBatchVerifyJson(bytes: Uint8Array): BatchVerifyApiKeysRequest {
  const requests = listOf(textOf(bytes));
  if (requests === undefined) return readJsonMessage(BatchVerifyApiKeysRequestSchema, bytes, LIMITS);
  const message = create(BatchVerifyApiKeysRequestSchema);
  message.requests = requests;
  return message;
}

/** Returns an empty text for what is not UTF-8: the complete reader says so. */
function textOf(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    return "";
  }
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
