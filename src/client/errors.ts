import { ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.js";

/** What is wrong with one field of a request; `field` is its path, such as `requests[3].raw_key`. */
export interface FieldViolation {
  readonly field: string;
  readonly description: string;
}

/** The reason that Keyhold gives (docs/api.md, "Errors"), such as `API_KEY_NOT_FOUND`; undefined if the error is not from it. */
export function errorReason(error: unknown): string | undefined {
  return ConnectError.from(error)
    .findDetails(ErrorInfoSchema)
    .find(({ domain }) => domain === "keyhold")?.reason;
}

/** The fields that an error of bad input names; empty for any other error. */
export function fieldViolations(error: unknown): FieldViolation[] {
  return ConnectError.from(error)
    .findDetails(BadRequestSchema)
    .flatMap(({ fieldViolations }) => fieldViolations.map(({ field, description }) => ({ field, description })));
}
