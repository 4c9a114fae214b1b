import type { VerifiableRecord } from "../domain/key-lookup.ts";
import { callerName } from "../domain/principal.ts";
import type { Invalid } from "../domain/verdict.ts";
import { andThen, type MaybePromise } from "../lib/maybe-promise.ts";
import { networkOf } from "../lib/network.ts";
import { failed, type Presentation, type Verification } from "./context.ts";
import { belongsTo, type Identified, identifiedByHash, identifiedRawKey, nativeDigests } from "./identified.ts";

/** What was identified, and its key; null: there is none. */
export interface Found {
  readonly identified: Identified;
  readonly stored: VerifiableRecord | null;
}

/** Finds the key of a credential, synchronously if it is cached. Rejects if the database cannot be read. */
export function load(
  call: Verification,
  credential: string,
  presentation: Presentation,
  identified: Identified,
): MaybePromise<Found | Invalid> {
  return andThen(call.context.findKey(identified.lookup, call.mode), (stored) =>
    isMiss(identified, stored) ? findByHash(call, credential, presentation, identified) : { identified, stored },
  );
}

/** Returns whether only a hash can show which key the raw key is. */
function isMiss(identified: Identified, stored: VerifiableRecord | null): boolean {
  if (identified.kind !== "imported") return false;
  if (stored === null) return true;
  const [secret] = stored.secrets;
  return secret?.hash !== undefined && !belongsTo(identified, secret);
}

function findByHash(
  call: Verification,
  credential: string,
  presentation: Presentation,
  identified: Identified,
): MaybePromise<Found | Invalid> {
  const { context, mode } = call;
  const digests = nativeDigests(identified);
  const answer = context.findByHash({
    rawKey: credential,
    digests,
    source: sourceOf(call, presentation),
    findAll: (lookup) => context.findAll(lookup, mode),
    isStale: false,
  });
  return andThen(answer, (match) => {
    if (match === null) return { identified, stored: null };
    if ("failure" in match) return failed(call, match.failure);
    const { stored, hashDigest } = match;
    const matched = hashDigest === null ? identifiedRawKey(digests) : identifiedByHash(digests, hashDigest);
    return { identified: matched, stored };
  });
}

/** Returns the name of who presents a credential: a network, by the word of the caller. */
function sourceOf({ caller }: Verification, { clientIp }: Presentation): string {
  const name = caller === undefined ? "" : callerName(caller);
  return `${name} ${networkOf(clientIp ?? caller?.clientAddress ?? "")}`;
}
