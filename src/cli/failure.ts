import { Code, ConnectError } from "@connectrpc/connect";
import { toConnectError } from "../api/errors.ts";
import { errorReason } from "../client/errors.ts";
import { KeyholdError } from "../domain/errors.ts";
import { toErrorBody } from "../transport/errors/error-body.ts";
import { EXIT_STATUS } from "./exit-status.ts";

/** By the code of the wire; what stands in none of the rows has failed. */
const BY_CODE: ReadonlyMap<Code, number> = new Map([
  [Code.InvalidArgument, EXIT_STATUS.usage],
  [Code.OutOfRange, EXIT_STATUS.usage],
  [Code.NotFound, EXIT_STATUS.notFound],
  [Code.Unauthenticated, EXIT_STATUS.denied],
  [Code.PermissionDenied, EXIT_STATUS.denied],
  [Code.AlreadyExists, EXIT_STATUS.conflict],
  [Code.FailedPrecondition, EXIT_STATUS.conflict],
  [Code.Aborted, EXIT_STATUS.conflict],
  [Code.Unavailable, EXIT_STATUS.unavailable],
  [Code.DeadlineExceeded, EXIT_STATUS.unavailable],
]);

export function exitStatus(error: unknown): number {
  const wire = onTheWire(error);
  if (errorReason(wire) === "CREDENTIAL_INVALID") return EXIT_STATUS.invalidCredential;
  return BY_CODE.get(wire.code) ?? EXIT_STATUS.failed;
}

/** What went wrong, and what that comes from. An error of several attempts to connect has a code and no message. */
export function explain(error: unknown): string {
  if (error instanceof ConnectError) return error.rawMessage;
  if (!(error instanceof Error)) return String(error);
  const message = error.message || ("code" in error ? String(error.code) : error.name);
  return error.cause instanceof Error ? `${message}: ${explain(error.cause)}` : message;
}

/** One line of JSON, in the form that the REST paths give errors (AIP-193). */
export function explainInJson(error: unknown): string {
  return JSON.stringify(toErrorBody(onTheWire(error)));
}

/** An error of a call as it came; any other as the server would tell it, but with its cause: it is told to who runs the command. */
function onTheWire(error: unknown): ConnectError {
  if (error instanceof ConnectError) return error;
  if (!(error instanceof KeyholdError)) return new ConnectError(explain(error), Code.Unknown);
  const { code, metadata, violations } = error;
  return toConnectError(new KeyholdError(code, explain(error), { metadata, violations }));
}
