import type { DescMessage, JsonReadOptions } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { Code, ConnectError, type ConnectRouter, createContextKey, type HandlerContext } from "@connectrpc/connect";
import { ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { ERROR_DOMAIN, toConnectError } from "../../api/errors.ts";
import { invalidArgument } from "../../errors.ts";
import { isJsonObject } from "../../lib/json.ts";
import { codeName, rpcName } from "../calls.ts";
import { refusalBody } from "../rest/error-response.ts";
import { BODY, parseJson } from "../rest/json-text.ts";
import { Refusal, type RefusalReason } from "../rest/refusal.ts";
import { readJson } from "../rest/request-decoder.ts";
import { callOf } from "./call.ts";

/**
 * Requests that Connect refuses by itself, before there is a call: its errors quote what the caller sent, which may be a
 * secret, name no field, and take malformed Protobuf for a fault of the server.
 */

/** Whether Connect has read the request and called the RPC. */
export const calledKey = createContextKey(false);

/**
 * For Connect's option `requestGate`. The one place between the failure to read a request and the writing of the error is the
 * abortion of the call, which has the error as its reason.
 */
export function watchReading(context: HandlerContext): void {
  requireReadableQuery(context);
  const onAbort = () => {
    const { reason } = context.signal;
    if (!(reason instanceof ConnectError) || context.values.get(calledKey)) return;
    if (reason.details.length === 0) rewrite(reason);
    callOf(context).log.add({ rpc: rpcName(context), code: codeName(reason.code) });
  };
  context.signal.addEventListener("abort", onAbort, { once: true });
}

function rewrite(error: ConnectError): void {
  const told = tell(error);
  if (told === undefined) return;
  const { code, message, rawMessage, details } = told;
  Object.assign(error, { code, message, rawMessage, details });
}

function tell({ code, rawMessage }: ConnectError): ConnectError | undefined {
  if (rawMessage.includes("timeout value")) return toConnectError(invalidArgument("timeout", "is not well-formed"));
  switch (code) {
    case Code.Internal:
    case Code.InvalidArgument:
      return toConnectError(invalidArgument(BODY, "is not a well-formed request of this RPC"));
    case Code.ResourceExhausted:
      return refused("BODY_TOO_LARGE");
    case Code.Unimplemented:
      return rawMessage.includes("compression")
        ? new ConnectError("compressed otherwise than by gzip or br", code)
        : undefined;
    default:
      return undefined;
  }
}

/** A refusal as Connect and gRPC tell it. */
export function refused(reason: RefusalReason): ConnectError {
  const { code, message } = new Refusal(reason).row;
  return new ConnectError(message, code, undefined, [
    { desc: ErrorInfoSchema, value: { reason, domain: ERROR_DOMAIN } },
  ]);
}

/** The message of a Connect GET. */
function requireReadableQuery({ requestMethod, url }: HandlerContext): void {
  const query = requestMethod === "GET" ? new URL(url).searchParams : new URLSearchParams();
  if (query.get("base64") !== "1") return;
  try {
    base64Decode(query.get("message") ?? "");
  } catch {
    throw toConnectError(invalidArgument("message", "is not base64"));
  }
}

/**
 * For Connect's option `jsonOptions`, of which `textDecoder` is the first to see a message: it is read here as on the REST
 * paths, by the same rules and with the same errors. Connect then reads what is known to be good.
 */
export function strictJson<O extends JsonReadOptions>(desc: DescMessage, options: O) {
  const text = new TextDecoder();
  const textDecoder = {
    decode(bytes: Uint8Array): string {
      try {
        const json = parseJson(bytes);
        if (!isJsonObject(json)) throw invalidArgument(BODY, "must be a JSON object");
        readJson(desc, json, options);
      } catch (error) {
        throw toConnectError(error);
      }
      return text.decode(bytes);
    },
  };
  return { ...options, textDecoder };
}

type Handler = ConnectRouter["handlers"][number];

/** The reasons of the answers that Connect gives without a body. */
const BODILESS: ReadonlyMap<number, RefusalReason> = new Map([
  [405, "METHOD_NOT_ALLOWED"],
  [415, "MEDIA_TYPE_NOT_SUPPORTED"],
]);

/** The handler with our form of error where Connect answers without a body. */
export function withErrorBody(handler: Handler): Handler {
  const serve: (...request: Parameters<Handler>) => ReturnType<Handler> = async (request) => {
    const response = await handler(request);
    const reason = response.body === undefined ? BODILESS.get(response.status) : undefined;
    if (reason === undefined) return response;
    const header = new Headers({ "content-type": "application/json; charset=utf-8", "cache-control": "no-store" });
    if (reason === "METHOD_NOT_ALLOWED") header.set("allow", handler.allowedMethods.join(", "));
    return { ...response, header, body: once(Buffer.from(refusalBody(new Refusal(reason)))) };
  };
  const { service, method, requestPath, supportedContentType, protocolNames, allowedMethods } = handler;
  return Object.assign(serve, { service, method, requestPath, supportedContentType, protocolNames, allowedMethods });
}

async function* once(bytes: Uint8Array<ArrayBuffer>) {
  yield bytes;
}
