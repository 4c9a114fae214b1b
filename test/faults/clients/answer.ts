import type { Outcome } from "../history.ts";
import { valid } from "../register.ts";

/** JSON as the service answered it. */
// biome-ignore lint/suspicious/noExplicitAny: what is in an answer is looked at where it is asked for
export type Json = any;

/** Milliseconds after which nobody waits for an answer any more. */
export const PATIENCE = 8_000;

/** An answer over whichever protocol. `status` is that of HTTP; 0: there was none, and nobody knows what became of the call. */
export interface Answer {
  readonly status: number;
  readonly body: Json;
  /** Of a 503, which must have it. */
  readonly retryAfter?: string | undefined;
}

export const LOST: Answer = { status: 0, body: undefined };

export function outcomeOf({ status, retryAfter }: Answer): Outcome {
  if (status === 0) return "lost";
  return status === 503 && Number(retryAfter) > 0 ? "unavailable" : "answered";
}

/** `API_KEY_REVOKED` and the like; undefined of an answer that is no error. */
export function reasonOf({ body }: Answer): string | undefined {
  return body?.error?.details?.[0]?.reason;
}

/** A verdict in the words of the model. */
export function verdictText({ is_valid, scopes, error_code }: Json): string {
  return is_valid ? valid(scopes) : codeText(error_code);
}

/** The verdict in a refusal to work with a credential; undefined of any other answer. */
export function refusalOf(answer: Answer): string | undefined {
  if (reasonOf(answer) !== "CREDENTIAL_INVALID") return undefined;
  return codeText(answer.body.error.details[0].metadata.error_code);
}

function codeText(code: string): string {
  return code.replace("VERIFICATION_ERROR_", "");
}
