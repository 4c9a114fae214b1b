import type dns from "node:dns";
import http from "node:http";
import https from "node:https";
import { KeyholdError } from "../../domain/errors.ts";
import { type Clock, type Monotonic, systemClock, systemMonotonic } from "../../lib/clock.ts";
import { AddressNotAllowedError, type AddressPolicy, checkedLookup, checkWebhookUrl } from "./address-policy.ts";
import { parseRetryAfter } from "./retry-after.ts";
import { signatureHeaders } from "./signature.ts";

export interface WebhookRequest {
  readonly url: string;
  /** `webhook-id`: the same in every attempt. */
  readonly id: string;
  readonly body: string;
  /** Raw secrets: one, or two while the secret rotates. */
  readonly secrets: readonly Uint8Array[];
}

/** What came back. */
export interface AttemptOutcome {
  /** HTTP status; null: no response. */
  readonly status: number | null;
  /** Why it failed, in a bounded text without secrets; null: 2xx. */
  readonly error: string | null;
  /** Milliseconds that the receiver asks to wait (`Retry-After`); null: none. */
  readonly retryAfter: number | null;
  /** Milliseconds. */
  readonly duration: number;
}

export interface WebhookSender {
  /** Makes one attempt. Rejects only if the signal aborts before there is a response: then the receiver may have the request, or not. */
  send(request: WebhookRequest, signal: AbortSignal): Promise<AttemptOutcome>;
}

/** In milliseconds, from the resolution of the name to the end of the response. */
const TIMEOUT = 15_000;

/** Bytes of a response that are read, and discarded. */
const MAX_RESPONSE = 65_536;

interface SenderOptions {
  readonly clock?: Clock;
  readonly monotonic?: Monotonic;
  readonly resolve?: typeof dns.lookup;
  /** Milliseconds. */
  readonly timeout?: number;
}

/** Returns a sender whose connections go only to addresses that the policy allows. */
export function webhookSender(
  policy: AddressPolicy,
  { clock = systemClock, monotonic = systemMonotonic, resolve, timeout = TIMEOUT }: SenderOptions = {},
): WebhookSender {
  const connectionTo = connections(policy, resolve);

  async function send(request: WebhookRequest, signal: AbortSignal): Promise<AttemptOutcome> {
    const began = monotonic();
    const deadline = AbortSignal.timeout(timeout);
    try {
      checkWebhookUrl(request.url, policy);
      const url = new URL(request.url);
      const response = await post(url, request.body, {
        ...connectionTo(url.protocol),
        headers: signatureHeaders(request, clock.now()),
        signal: AbortSignal.any([signal, deadline]),
      });
      await discard(response);
      const { statusCode: status = 0, headers } = response;
      const retryAfter = parseRetryAfter(headers["retry-after"], clock.now());
      return { status, error: errorOf(status), retryAfter, duration: monotonic() - began };
    } catch (error) {
      signal.throwIfAborted();
      const reason = deadline.aborted ? `no response within ${timeout / 1000} s` : describe(error);
      return { status: null, error: reason, retryAfter: null, duration: monotonic() - began };
    }
  }

  return { send };
}

/** Returns the options of connections by the protocol of the URL. Each request has a connection of its own, and no environment variable a say. */
function connections({ proxy, ...rest }: AddressPolicy, resolve?: typeof dns.lookup) {
  if (proxy !== null) {
    const agents: Readonly<Record<string, http.Agent>> = {
      "http:": new http.Agent({ proxyEnv: { HTTP_PROXY: proxy } }),
      "https:": new https.Agent({ proxyEnv: { HTTPS_PROXY: proxy } }),
    };
    return (protocol: string) => ({ agent: agents[protocol] });
  }
  return (protocol: string) => ({
    agent: false,
    autoSelectFamily: true,
    lookup: checkedLookup(protocol, { proxy, ...rest }, resolve),
  });
}

/** Returns the head of the response. `node:http` follows no redirects and has no cookies. */
function post(url: URL, body: string, options: https.RequestOptions): Promise<http.IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<http.IncomingMessage>();
  const request = (url.protocol === "https:" ? https : http).request(url, {
    ...options,
    method: "POST",
    headers: { ...options.headers, "content-type": "application/json", "user-agent": "Keyhold" },
    // NODE_TLS_REJECT_UNAUTHORIZED=0 does not disable it.
    rejectUnauthorized: true,
  });
  request.once("response", resolve);
  request.on("error", reject);
  // Also after a response that switches protocols, which nothing else reports.
  request.once("close", () => reject(new Error("the connection was closed")));
  request.end(body);
  return promise;
}

/** Reads the body of a response, up to a limit. An error does not matter: the status is already known. */
async function discard(response: http.IncomingMessage): Promise<void> {
  let bytes = 0;
  try {
    for await (const chunk of response) {
      bytes += chunk.length;
      if (bytes > MAX_RESPONSE) break;
    }
  } catch {}
}

function errorOf(status: number): string | null {
  if (status >= 200 && status < 300) return null;
  return status >= 300 && status < 400 ? `HTTP ${status}: redirects are not followed` : `HTTP ${status}`;
}

/** Messages of other errors are not used: they may contain parts of a response, or the password of a proxy. */
function describe(error: unknown): string {
  if (error instanceof KeyholdError || error instanceof AddressNotAllowedError) return error.message;
  const { code } = error as NodeJS.ErrnoException;
  return `request failed${typeof code === "string" && /^[A-Z][A-Z0-9_]{1,63}$/.test(code) ? `: ${code}` : ""}`;
}
