import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { ERROR_DOMAIN } from "../../api/errors.ts";

/** Errors of the transport by their reason in ErrorInfo. `http` differs from the status of the code where HTTP has a specific one. */
export const HTTP_ERRORS = {
  PATH_NOT_FOUND: { code: Code.NotFound, http: 404, message: "no such path; see /docs" },
  HOST_NOT_ALLOWED: {
    code: Code.PermissionDenied,
    http: 403,
    message:
      "unless KEYHOLD_AUTH requires authentication, the Host header must be a loopback name (or, with KEYHOLD_AUTH=none, an IP address) or be listed in KEYHOLD_ALLOWED_HOSTS",
  },
  ORIGIN_NOT_ALLOWED: {
    code: Code.PermissionDenied,
    http: 403,
    message:
      "unless KEYHOLD_AUTH requires authentication, the Origin header must be the origin of this server or be listed in KEYHOLD_CORS_ORIGINS",
  },
  PROXY_NOT_ALLOWED: {
    code: Code.PermissionDenied,
    http: 403,
    message: "requests through a proxy are rejected unless KEYHOLD_AUTH is set",
  },
  METHOD_NOT_ALLOWED: { code: Code.Unimplemented, http: 405, message: "method not allowed" },
  // The code that gRPC and Connect use for a message that is too large.
  BODY_TOO_LARGE: { code: Code.ResourceExhausted, http: 413, message: "the request body is too large" },
  HTTP_MALFORMED: { code: Code.InvalidArgument, http: 400, message: "the request is not well-formed HTTP" },
  HEADER_TOO_LARGE: { code: Code.InvalidArgument, http: 431, message: "the URL and header fields are too large" },
  REQUEST_TIMED_OUT: {
    code: Code.DeadlineExceeded,
    http: 408,
    message: "the client did not send the complete request in time",
  },
  URL_MALFORMED: { code: Code.InvalidArgument, http: 400, message: "the URL has a malformed percent-encoding" },
  URL_TOO_LONG: { code: Code.InvalidArgument, http: 414, message: "a segment of the URL is too long" },
  HTTP_VERSION_NOT_SUPPORTED: { code: Code.Unimplemented, http: 505, message: "bidirectional streams need HTTP/2" },
  MEDIA_TYPE_NOT_SUPPORTED: {
    code: Code.InvalidArgument,
    http: 415,
    message: "the request body must be application/json in UTF-8",
  },
  CONTENT_ENCODING_NOT_SUPPORTED: {
    code: Code.InvalidArgument,
    http: 415,
    message: "the request body must not be compressed",
  },
  REQUEST_CANCELLED: { code: Code.Canceled, http: 499, message: "the client disconnected" },
} as const satisfies Record<string, { code: Code; http: number; message: string }>;

export type HttpErrorReason = keyof typeof HTTP_ERRORS;

/** A request that the transport rejects. */
export class HttpError extends ConnectError {
  readonly reason: HttpErrorReason;

  /** `headers` are added to the response; `message` replaces that of the reason. */
  constructor(reason: HttpErrorReason, headers: Readonly<Record<string, string>> = {}, message?: string) {
    const { code, message: text } = HTTP_ERRORS[reason];
    super(message ?? text, code, headers, [{ desc: ErrorInfoSchema, value: { reason, domain: ERROR_DOMAIN } }]);
    this.reason = reason;
  }

  /** ConnectError's own check compares names and accepts every ConnectError. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return Object.prototype.isPrototypeOf.call(HttpError.prototype, Object(value));
  }
}

/** Returns the error of a path that does not support the method of the request. */
export function methodNotAllowed(allowed: readonly string[]): HttpError {
  const allow = allowed.join(", ");
  return new HttpError("METHOD_NOT_ALLOWED", { allow }, `method not allowed; allowed: ${allow}`);
}

/** Returns the error of a method that no path supports. */
export function methodUnknown(): HttpError {
  return methodNotAllowed(["GET", "HEAD", "POST", "PATCH", "DELETE"]);
}

/**
 * The HTTP status of each code and its name in google.rpc.Code (google/rpc/code.proto, "HTTP Mapping"), except that FAILED_PRECONDITION
 * is 409 on our REST paths: the state of the key is the obstacle, not the form of the request.
 */
export const STATUSES: Readonly<Record<Code, { readonly http: number; readonly name: string }>> = {
  [Code.Canceled]: { http: 499, name: "CANCELLED" },
  [Code.Unknown]: { http: 500, name: "UNKNOWN" },
  [Code.InvalidArgument]: { http: 400, name: "INVALID_ARGUMENT" },
  [Code.DeadlineExceeded]: { http: 504, name: "DEADLINE_EXCEEDED" },
  [Code.NotFound]: { http: 404, name: "NOT_FOUND" },
  [Code.AlreadyExists]: { http: 409, name: "ALREADY_EXISTS" },
  [Code.PermissionDenied]: { http: 403, name: "PERMISSION_DENIED" },
  [Code.ResourceExhausted]: { http: 429, name: "RESOURCE_EXHAUSTED" },
  [Code.FailedPrecondition]: { http: 409, name: "FAILED_PRECONDITION" },
  [Code.Aborted]: { http: 409, name: "ABORTED" },
  [Code.OutOfRange]: { http: 400, name: "OUT_OF_RANGE" },
  [Code.Unimplemented]: { http: 501, name: "UNIMPLEMENTED" },
  [Code.Internal]: { http: 500, name: "INTERNAL" },
  [Code.Unavailable]: { http: 503, name: "UNAVAILABLE" },
  [Code.DataLoss]: { http: 500, name: "DATA_LOSS" },
  [Code.Unauthenticated]: { http: 401, name: "UNAUTHENTICATED" },
};
