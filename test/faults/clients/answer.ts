import type { Outcome } from "../history.ts";
import { valid } from "../register.ts";

/** JSON of a response. */
// biome-ignore lint/suspicious/noExplicitAny: each caller reads the members that it expects
export type Json = any;

/** Milliseconds after which clients give up a request. */
export const REQUEST_TIMEOUT = 8_000;

/** A response over any protocol. `status` is that of HTTP; 0: no response, so the outcome of the call is unknown. */
export interface Answer {
  readonly status: number;
  readonly body: Json;
  /** The header of a 503, which is required. */
  readonly retryAfter?: string | undefined;
}

export const LOST: Answer = { status: 0, body: undefined };

export function outcomeOf({ status, retryAfter }: Answer): Outcome {
  if (status === 0) return "lost";
  return status === 503 && Number(retryAfter) > 0 ? "unavailable" : "answered";
}

/** Returns the reason of an error, such as `API_KEY_REVOKED`; undefined for other responses. */
export function reasonOf({ body }: Answer): string | undefined {
  return body?.error?.details?.[0]?.reason;
}

/** Returns a verdict in the terms of the model. */
export function verdictText({ is_valid, scopes, error_code }: Json): string {
  return is_valid ? valid(scopes) : codeText(error_code);
}

/** Returns the verdict in the rejection of a credential; undefined for any other response. */
export function refusalOf(answer: Answer): string | undefined {
  if (reasonOf(answer) !== "CREDENTIAL_INVALID") return undefined;
  return codeText(answer.body.error.details[0].metadata.error_code);
}

function codeText(code: string): string {
  return code.replace("VERIFICATION_ERROR_", "");
}
