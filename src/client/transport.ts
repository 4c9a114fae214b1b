import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { codeFromHttpStatus } from "@connectrpc/connect/protocol-connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { errorReason } from "./errors.ts";
import { unreachableMessage } from "./unreachable.ts";

export type Fetch = typeof globalThis.fetch;

/** Headers of a call. */
export type RequestHeaders = Parameters<Transport["unary"]>[3];

/** Returns a transport with another implementation of unary calls. */
export function withUnary(transport: Transport, unary: Transport["unary"]): Transport {
  return { unary, stream: (...call) => transport.stream(...call) };
}

/**
 * Returns a transport of the Connect protocol over `fetch`. Messages are binary, since enum values of a later server cannot be read from
 * JSON. Errors that do not come from Keyhold name the URL and the cause; an unreachable server is UNAVAILABLE.
 */
export function fetchTransport(baseUrl: string | undefined, fetch: Fetch = globalThis.fetch): Transport {
  const url = checkBaseUrl(baseUrl);
  const checked: Fetch = async (...request) => checkResponse(url, await fetch(...request));
  const transport = createConnectTransport({ baseUrl: url, useBinaryFormat: true, fetch: checked });
  const explained = async <T>(call: () => Promise<T>) => {
    try {
      return await call();
    } catch (error) {
      throw toClientError(url, ConnectError.from(error));
    }
  };
  return {
    unary: (...call) => explained(() => transport.unary(...call)),
    stream: async (...call) => {
      const response = await explained(() => transport.stream(...call));
      const messages = response.message[Symbol.asyncIterator]();
      const next = () => explained(() => messages.next());
      return { ...response, message: { [Symbol.asyncIterator]: () => ({ next }) } };
    },
  };
}

/** Rejects a URL with a password: `fetch` would too, with an error that quotes it. */
function checkBaseUrl(baseUrl: string | undefined): string {
  const url = baseUrl !== undefined && URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (baseUrl !== undefined && url !== undefined && /^https?:$/.test(url.protocol) && !url.username && !url.password)
    return baseUrl;
  throw new TypeError("baseUrl: must be an http or https URL without a user or password");
}

/** The content type of a message, and that of a stream. */
const PROTO = /^application\/(?:connect\+)?proto$/;

/** Rejects a response that is not of the Connect protocol (https://connectrpc.com/docs/protocol, "Unary-Response"). */
async function checkResponse(baseUrl: string, response: Response): Promise<Response> {
  const { status, headers } = response;
  const type = headers.get("content-type") ?? "";
  if (status === 200 ? PROTO.test(type) : await isConnectError(response.clone(), type)) return response;
  const what = status === 200 ? `HTTP 200 with content type ${type || "none"}` : `HTTP ${status}`;
  const message = `${baseUrl} responded with ${what}, which is not a Keyhold response${status < 500 ? "; check the URL" : ""}`;
  throw new ConnectError(message, codeFromHttpStatus(status), headers);
}

async function isConnectError(response: Response, type: string): Promise<boolean> {
  if (!type.startsWith("application/json")) return false;
  const body: unknown = await response.json().catch(() => null);
  return typeof body === "object" && body !== null && "code" in body && typeof body.code === "string";
}

/** Names the URL. `fetch` rejects with a TypeError without a response (Fetch Standard §5.6), which Connect maps to UNKNOWN. */
function toClientError(baseUrl: string, error: ConnectError): ConnectError {
  const { code, cause } = error;
  if (code === Code.Unknown && cause instanceof TypeError)
    return new ConnectError(unreachableMessage(baseUrl, cause), Code.Unavailable, undefined, undefined, cause);
  if (code === Code.DeadlineExceeded && errorReason(error) === undefined)
    return new ConnectError(`${baseUrl} did not respond in time`, code, error.metadata, undefined, cause);
  return error;
}
