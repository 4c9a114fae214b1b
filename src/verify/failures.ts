import type { KeyholdError } from "../domain/errors.ts";
import { type Invalid, invalid } from "../domain/verdict.ts";
import { andThen, type MaybePromise, recover } from "../lib/maybe-promise.ts";
import type { Attempt, Presentation, Verification } from "./context.ts";
import { isKeyOf } from "./evaluate.ts";
import type { Identified } from "./identified.ts";
import { type Found, load } from "./load.ts";

/** Returns what was identified, and counts a credential that is not authentic. */
export function countUnidentified(
  call: Verification,
  presentation: Presentation,
  identified: Identified | Invalid,
): Identified | Invalid {
  if (!("valid" in identified) || identified.reason === "INTERNAL") return identified;
  return conclude(begin(call, presentation), identified, true);
}

/**
 * Loads the key of a credential that is not cached, and counts one that belongs to no key. While too many verifications of the client or the
 * caller fail, a raw key is denied without a read of the database, unless the caller wants it to be read. Every other credential proves by
 * itself that Keyhold has issued it.
 */
export function loadWithinLimit(
  call: Verification,
  credential: string,
  presentation: Presentation,
  identified: Identified,
): MaybePromise<Found | Invalid> {
  const attempt = begin(call, presentation);
  if (attempt === null) return load(call, credential, presentation, identified);
  const isRawKey = identified.kind === "imported";
  const error = isRawKey && call.mode === "default" && call.context.credentials !== null ? attempt.read() : null;
  if (error !== null) return denied(error);
  const found = recover(
    () => load(call, credential, presentation, identified),
    (error) => endFailed(attempt, error),
  );
  return andThen(found, (found) => conclude(attempt, found, isFailure(found)));
}

function begin({ context: { failures }, caller }: Verification, presentation: Presentation): Attempt | null {
  return failures === null || caller === undefined ? null : failures.begin(caller, presentation.clientIp);
}

function conclude<T>(attempt: Attempt | null, result: T, isFailed: boolean): T | Invalid {
  const error = attempt?.end(isFailed) ?? null;
  return error === null ? result : denied(error);
}

function endFailed(attempt: Attempt, error: unknown): never {
  attempt.end(false);
  throw error;
}

function isFailure(found: Found | Invalid): boolean {
  if ("valid" in found) return found.reason !== "INTERNAL";
  return found.stored === null || !isKeyOf(found.identified, found.stored);
}

function denied(denial: KeyholdError): Invalid {
  return { ...invalid("RATE_LIMITED", denial.message), denial };
}
