import { Code } from "@connectrpc/connect";

/**
 * The HTTP status of each code and its name in google.rpc.Code: google/rpc/code.proto, "HTTP Mapping", but for FAILED_PRECONDITION, which is 409 on our REST paths (contract §6): what stands
 * in the way is the state of the key, not the form of the request.
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
