import { ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";

/** A problem with one field of a request; `field` is its path, such as `requests[3].raw_key`. */
export interface FieldViolation {
  readonly field: string;
  readonly description: string;
  /** Why, for programs: `STRING_TOO_LONG` and the like (docs/api.md, "Invalid fields"). Empty if the server is older than 0.3. */
  readonly reason: string;
}

/** Returns the reason of a Keyhold error (docs/api.md, "Errors"), such as `API_KEY_NOT_FOUND`; undefined for any other error. */
export function errorReason(error: unknown): string | undefined {
  return ConnectError.from(error)
    .findDetails(ErrorInfoSchema)
    .find(({ domain }) => domain === "keyhold")?.reason;
}

/** Returns the invalid fields of an INVALID_ARGUMENT error; empty for any other error. */
export function fieldViolations(error: unknown): FieldViolation[] {
  return ConnectError.from(error)
    .findDetails(BadRequestSchema)
    .flatMap(({ fieldViolations }) =>
      fieldViolations.map(({ field, description, reason }) => ({ field, description, reason })),
    );
}
