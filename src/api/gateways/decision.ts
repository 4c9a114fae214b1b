import { Code, type ConnectError } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import type { ErrorCode } from "../../domain/errors.ts";
import {
  type EncodedAnswers,
  errorCodeOf,
  type Invalid,
  isLimitExceeded,
  type RejectionReason,
} from "../../domain/verdict.ts";
import { memoizable } from "../../lib/memoize.ts";
import { ERROR_DOMAIN, toConnectError } from "../errors.ts";
import { denies, limitFields, retryAfterOf } from "../limit-fields.ts";
import type { GatewayIdentity, HeaderField } from "./identity-headers.ts";

/** What a gateway does with a request, in the terms of HTTP. */
export interface GatewayDecision {
  /** 200: pass the request. Otherwise, answer the client with this status, these headers and this body. */
  readonly status: GatewayStatus;
  /** Names in lower case. The values are visible ASCII and spaces. */
  readonly headers: readonly HeaderField[];
  /** For the client in any case: the states of the limits of a credential that is accepted. They differ by call, so no encoded answer has them. */
  readonly limitHeaders?: readonly HeaderField[];
  /** Set for 200 only. */
  readonly identity?: GatewayIdentity;
  /** JSON of an error (AIP-193); empty for 200. */
  readonly body: string;
  /** Of the verdict, for 200. */
  readonly answers?: EncodedAnswers | undefined;
}

/** Receives the status of every decision. */
export type OnDecision = (status: GatewayStatus) => void;

/** A gateway that caches a decision voids the promise that a revocation takes effect at once. */
export const NO_STORE: HeaderField = ["cache-control", "no-store"];

/** By google.rpc.Code. Envoy passes a request only with 0. */
export const GATEWAY_CODES = {
  200: 0,
  400: Code.InvalidArgument,
  401: Code.Unauthenticated,
  403: Code.PermissionDenied,
  429: Code.ResourceExhausted,
  503: Code.Unavailable,
} as const;

export type GatewayStatus = keyof typeof GATEWAY_CODES;

interface Denial {
  readonly status: Exclude<GatewayStatus, 200>;
  readonly reason: ErrorCode | "CREDENTIAL_NOT_PERMITTED";
  readonly message: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly headers?: readonly HeaderField[];
  /** In JSON. */
  readonly details?: readonly object[];
}

const JSON_TYPE: HeaderField = ["content-type", "application/json; charset=utf-8"];

/** Seconds, as for every error that is temporary. */
const RETRY_AFTER: HeaderField = ["retry-after", "1"];
const RETRY_INFO = { "@type": "type.googleapis.com/google.rpc.RetryInfo", retry_delay: "1s" };

const CHALLENGE = 'Bearer realm="keyhold"';

/** The decision for a request without a credential (RFC 6750 §3.1: without an error code). */
export const UNAUTHENTICATED = memoizable(
  deny({
    status: 401,
    reason: "CREDENTIAL_INVALID",
    message: "no credential was sent",
    headers: [["www-authenticate", CHALLENGE]],
  }),
);

/** Returns the decision for a request whose credential is not clear, or that a gateway does not ask correctly. */
export function malformed(message: string): GatewayDecision {
  const challenge = `${CHALLENGE}, error="invalid_request", error_description=${quoted(message)}`;
  return deny({ status: 400, reason: "INVALID_ARGUMENT", message, headers: [["www-authenticate", challenge]] });
}

/** Rejections of a valid credential for this request: another one, or from elsewhere, may be accepted. */
const FORBIDDEN: readonly RejectionReason[] = ["INSUFFICIENT_SCOPE", "IP_NOT_ALLOWED", "AUDIENCE_MISMATCH"];

export function rejected(verdict: Invalid, requiredScopes: readonly string[]): GatewayDecision {
  const { reason, message } = verdict;
  const metadata = errorCodeOf(reason);
  if (isLimitExceeded(reason)) return limited(verdict);
  if (reason === "INTERNAL") return unavailable("INTERNAL", message);
  if (!FORBIDDEN.includes(reason)) {
    const challenge = `${CHALLENGE}, error="invalid_token", error_description=${quoted(message)}`;
    const headers: HeaderField[] = [["www-authenticate", challenge]];
    return deny({ status: 401, reason: "CREDENTIAL_INVALID", message, metadata, headers });
  }
  const scope = `${CHALLENGE}, error="insufficient_scope", scope=${quoted(requiredScopes.join(" "))}`;
  const headers: HeaderField[] = reason === "INSUFFICIENT_SCOPE" ? [["www-authenticate", scope]] : [];
  return deny({ status: 403, reason: "CREDENTIAL_NOT_PERMITTED", message, metadata, headers });
}

/** Returns the decision for a credential whose limit is exceeded (RFC 6585 §4). */
function limited({ reason, message, limits = [], denial }: Invalid): GatewayDecision {
  const seconds = denial?.retryAfter ?? retryAfterOf(limits);
  const exceeded = limits.filter(denies).map(({ limit }) => ({ subject: `limit:${limit.name}`, description: message }));
  const headers: HeaderField[] = [["retry-after", `${seconds}`], ...Object.entries(limitFields(limits))];
  const details = [
    { "@type": "type.googleapis.com/google.rpc.RetryInfo", retry_delay: `${seconds}s` },
    {
      "@type": "type.googleapis.com/google.rpc.QuotaFailure",
      violations: denial?.quota === undefined ? exceeded : [denial.quota],
    },
  ];
  return deny({ status: 429, reason: "RATE_LIMITED", message, metadata: errorCodeOf(reason), headers, details });
}

/**
 * Returns the decision for a call without a verdict. An internal error is unavailability for a client, and so is a gateway that may not ask:
 * neither is a verdict, and the client can do nothing about it.
 */
export function failed(cause: unknown): GatewayDecision {
  const error = toConnectError(cause);
  const reason = reasonOf(error);
  switch (error.code) {
    case Code.InvalidArgument:
      return malformed(error.rawMessage);
    case Code.Unauthenticated:
    case Code.PermissionDenied:
      return unavailable("CALLER_NOT_PERMITTED", error.rawMessage);
    default:
      return unavailable(reason, error.rawMessage);
  }
}

function unavailable(reason: ErrorCode, message: string): GatewayDecision {
  return deny({ status: 503, reason, message, headers: [RETRY_AFTER] });
}

/** Returns the reason in the details of an error of ours. */
function reasonOf({ details }: ConnectError): ErrorCode {
  const [info] = details;
  const reason = info !== undefined && "value" in info ? Reflect.get(info.value, "reason") : undefined;
  return typeof reason === "string" ? (reason as ErrorCode) : "INTERNAL";
}

function deny({ status, reason, message, metadata = {}, headers = [], details: more = [] }: Denial): GatewayDecision {
  const info = { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason, domain: ERROR_DOMAIN, metadata };
  const details = headers.includes(RETRY_AFTER) ? [info, RETRY_INFO] : [info, ...more];
  const body = JSON.stringify({
    error: { code: status, message, status: codeToString(GATEWAY_CODES[status]).toUpperCase(), details },
  });
  return { status, headers: [NO_STORE, JSON_TYPE, ...headers], body };
}

/** Returns a quoted string (RFC 9110 §5.6.4) of ASCII (RFC 6750 §3). */
function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, "\\$&").replace(/[^\x20-\x7e]/g, "?")}"`;
}
