import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";

export type Fetch = typeof globalThis.fetch;

/** The same transport with another way to make the unary calls, which are all that Keyhold has. */
export function overUnary(transport: Transport, unary: Transport["unary"]): Transport {
  return { unary, stream: (...call) => transport.stream(...call) };
}

/**
 * The Connect protocol in binary over `fetch`, which Node, browsers and edge runtimes have. Binary, since an enum value of a later
 * server cannot be read from JSON. A server that cannot be reached is UNAVAILABLE.
 */
export function fetchTransport(baseUrl: string | undefined, fetch?: Fetch): Transport {
  if (baseUrl === undefined || !/^https?:$/.test(URL.canParse(baseUrl) ? new URL(baseUrl).protocol : "")) {
    throw new TypeError("baseUrl: must be an http or https URL");
  }
  const transport = createConnectTransport({ baseUrl, useBinaryFormat: true, ...(fetch && { fetch }) });
  return overUnary(transport, async (...call) => {
    try {
      return await transport.unary(...call);
    } catch (error) {
      throw unreachable(error);
    }
  });
}

/** `fetch` rejects with a TypeError when there is no answer (Fetch Standard §5.6), and Connect makes that UNKNOWN. */
function unreachable(error: unknown): ConnectError {
  const { code, cause } = ConnectError.from(error);
  if (code !== Code.Unknown || !(cause instanceof TypeError)) return ConnectError.from(error);
  return new ConnectError("the server cannot be reached", Code.Unavailable, undefined, undefined, cause);
}
