import { Code } from "@connectrpc/connect";

interface RefusalRow {
  readonly code: Code;
  /** Not the HTTP status of the code where HTTP has one of its own for the case. */
  readonly http: number;
  readonly message: string;
}

/** What the transport itself turns away, before there is an RPC. The key is the reason in the error's ErrorInfo. */
export const REFUSALS = {
  PATH_NOT_FOUND: { code: Code.NotFound, http: 404, message: "there is nothing at this path" },
  HOST_NOT_ALLOWED: {
    code: Code.PermissionDenied,
    http: 403,
    message: "while KEYHOLD_AUTH is not set, the service answers to no name but localhost and loopback addresses",
  },
  ORIGIN_NOT_ALLOWED: {
    code: Code.PermissionDenied,
    http: 403,
    message: "while KEYHOLD_AUTH is not set, pages of other places may not call, but for those in KEYHOLD_CORS_ORIGINS",
  },
  METHOD_NOT_ALLOWED: { code: Code.Unimplemented, http: 405, message: "this path does not take this method" },
  // The code is that of gRPC and Connect for a message that is too large.
  BODY_TOO_LARGE: { code: Code.ResourceExhausted, http: 413, message: "the request body is too large" },
  HTTP_MALFORMED: { code: Code.InvalidArgument, http: 400, message: "the request is not well-formed HTTP" },
  HEADER_TOO_LARGE: { code: Code.InvalidArgument, http: 431, message: "the URL and header fields are too large" },
  REQUEST_TIMED_OUT: { code: Code.DeadlineExceeded, http: 408, message: "the request was not complete in time" },
  URL_MALFORMED: { code: Code.InvalidArgument, http: 400, message: "the URL has a malformed percent-encoding" },
  URL_TOO_LONG: { code: Code.InvalidArgument, http: 414, message: "a part of the URL is too long" },
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
  REQUEST_CANCELLED: { code: Code.Canceled, http: 499, message: "the caller went away" },
  TIMED_OUT: { code: Code.Unavailable, http: 503, message: "the service did not answer in time" },
} as const satisfies Record<string, RefusalRow>;

export type RefusalReason = keyof typeof REFUSALS;

/** A request that the transport turns away. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly reason: RefusalReason;
  readonly row: RefusalRow;
  /** For the response. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(reason: RefusalReason, headers: Readonly<Record<string, string>> = {}) {
    super(REFUSALS[reason].message);
    this.reason = reason;
    this.row = REFUSALS[reason];
    this.headers = headers;
  }
}
