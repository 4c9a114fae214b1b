import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { codeFromHttpStatus } from "@connectrpc/connect/protocol-connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { errorReason } from "./errors.ts";
import { unreachableMessage } from "./unreachable.ts";

export type Fetch = typeof globalThis.fetch;

/** The same transport with another way to make the unary calls, which are all that Keyhold has. */
export function overUnary(transport: Transport, unary: Transport["unary"]): Transport {
  return { unary, stream: (...call) => transport.stream(...call) };
}

/**
 * The Connect protocol in binary over `fetch`, which Node, browsers and edge runtimes have. Binary, since an enum value of a later
 * server cannot be read from JSON. Errors that are not of Keyhold name the URL and the cause; a server that cannot be reached is
 * UNAVAILABLE.
 */
export function fetchTransport(baseUrl: string | undefined, fetch: Fetch = globalThis.fetch): Transport {
  const url = checkBaseUrl(baseUrl);
  const checked: Fetch = async (...request) => checkAnswer(url, await fetch(...request));
  const transport = createConnectTransport({ baseUrl: url, useBinaryFormat: true, fetch: checked });
  return overUnary(transport, async (...call) => {
    try {
      return await transport.unary(...call);
    } catch (error) {
      throw explained(url, ConnectError.from(error));
    }
  });
}

/** `fetch` takes no URL with a password, and its error would show it. */
function checkBaseUrl(baseUrl: string | undefined): string {
  const url = baseUrl !== undefined && URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (baseUrl !== undefined && url !== undefined && /^https?:$/.test(url.protocol) && !url.username && !url.password)
    return baseUrl;
  throw new TypeError("baseUrl: must be an http or https URL without user and password");
}

/** Rejects what is no answer of the Connect protocol (https://connectrpc.com/docs/protocol, "Unary-Response"), with its code. */
async function checkAnswer(baseUrl: string, response: Response): Promise<Response> {
  const { status, headers } = response;
  const type = headers.get("content-type") ?? "";
  if (status === 200 ? type === "application/proto" : await isConnectError(response.clone(), type)) return response;
  const what = status === 200 ? `HTTP 200 with content type ${type || "none"}` : `HTTP ${status}`;
  const message = `${baseUrl} answered ${what}, not as Keyhold does${status < 500 ? ": see that the URL is right" : ""}`;
  throw new ConnectError(message, codeFromHttpStatus(status), headers);
}

async function isConnectError(response: Response, type: string): Promise<boolean> {
  if (!type.startsWith("application/json")) return false;
  const body: unknown = await response.json().catch(() => null);
  return typeof body === "object" && body !== null && "code" in body && typeof body.code === "string";
}

/** `fetch` rejects with a TypeError when there is no answer (Fetch Standard §5.6), and Connect makes that UNKNOWN. */
function explained(baseUrl: string, error: ConnectError): ConnectError {
  const { code, cause } = error;
  if (code === Code.Unknown && cause instanceof TypeError)
    return new ConnectError(unreachableMessage(baseUrl, cause), Code.Unavailable, undefined, undefined, cause);
  if (code === Code.DeadlineExceeded && errorReason(error) === undefined)
    return new ConnectError(`${baseUrl} did not answer in time`, code, error.metadata, undefined, cause);
  return error;
}
