import { Code, ConnectError } from "@connectrpc/connect";
import { toConnectError } from "../api/errors.ts";
import { errorReason } from "../client/errors.ts";
import { KeyholdError } from "../domain/errors.ts";
import { toErrorBody } from "../transport/wire/error-body.ts";
import { EXIT_STATUS } from "./exit-status.ts";
import { jsonText } from "./output.ts";
import { redactArguments, shortenUrls, shownPath } from "./redact.ts";

/** Exit statuses by wire code; `failed` for any other. */
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
  const wire = toWireError(error);
  if (errorReason(wire) === "CREDENTIAL_INVALID") return EXIT_STATUS.invalidCredential;
  return BY_CODE.get(wire.code) ?? EXIT_STATUS.failed;
}

/** Returns the message of an error and its causes, without what may be a credential on the command line. */
export function explain(error: unknown): string {
  return redactArguments(messageOf(error));
}

/** An AggregateError of connection attempts has a code and no message. */
function messageOf(error: unknown): string {
  if (error instanceof ConnectError) return shortenUrls(error.rawMessage);
  if (!(error instanceof Error)) return String(error);
  const message = error.message || ("code" in error ? String(error.code) : error.name);
  const path = "path" in error && typeof error.path === "string" ? error.path : "";
  const shown = path === "" ? message : message.replaceAll(path, shownPath(path));
  return error.cause instanceof Error ? `${shown}: ${messageOf(error.cause)}` : shown;
}

/** Returns one line of JSON in the error format of REST (AIP-193), with the causes in the message: the reader runs the command. */
export function explainInJson(error: unknown): string {
  const body = toErrorBody(toWireError(error));
  return redactArguments(jsonText({ error: { ...body.error, message: messageOf(error) } }));
}

/** Converts as the server does, which hides any other error. */
function toWireError(error: unknown): ConnectError {
  const isPublic = error instanceof ConnectError || error instanceof KeyholdError;
  return isPublic ? toConnectError(error) : new ConnectError("", Code.Unknown);
}
