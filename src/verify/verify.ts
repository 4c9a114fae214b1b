import { type Invalid, invalid, type Verdict } from "../record/verdict.ts";
import type { VerifyContext } from "./context.ts";
import { judge } from "./judge.ts";
import { type Recognized, recognize } from "./recognize.ts";

/** Judges one credential. Rejects only when no verdict can be reached, as without a database. */
export async function verify(context: VerifyContext, credential: string): Promise<Verdict> {
  const recognized = await recognize(credential, context);
  if ("valid" in recognized) return recognized;
  const [stored] = await context.findKeys([recognized.lookup]);
  return conclude(context, recognized, stored ?? null);
}

/** Judges credentials with one look at the store: a verdict for each, in order. One that is bad spoils no other. */
export async function verifyAll(context: VerifyContext, credentials: readonly string[]): Promise<Verdict[]> {
  const all = await Promise.all(credentials.map((credential) => recognizeOrFault(context, credential)));
  const found = all.filter((one): one is Recognized => !("valid" in one));
  const stored = found.length === 0 ? [] : await context.findKeys(found.map(({ lookup }) => lookup));
  const byRecognized = new Map(found.map((one, place) => [one, stored[place] ?? null]));
  return all.map((one) => ("valid" in one ? one : conclude(context, one, byRecognized.get(one) ?? null)));
}

async function recognizeOrFault(context: VerifyContext, credential: string): Promise<Recognized | Invalid> {
  try {
    return await recognize(credential, context);
  } catch (error) {
    context.onFault(error);
    return invalid("INTERNAL", "no verdict could be reached");
  }
}

function conclude(context: VerifyContext, recognized: Recognized, stored: Parameters<typeof judge>[1]): Verdict {
  const verdict = judge(recognized, stored, context.clock.now());
  if (verdict.valid) context.onValid(verdict.key.keyId);
  return verdict;
}
