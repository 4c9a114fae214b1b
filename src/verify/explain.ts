import { classify } from "../credential/kinds.ts";
import type { VerifiableKey } from "../domain/key.ts";
import { chargedLimits, isQuota, type LimitStatus } from "../domain/rate-limit.ts";
import type { CredentialType, Invalid, Valid, Verdict } from "../domain/verdict.ts";
import { missingScopes } from "../lib/missing-scopes.ts";
import {
  ACCESS_CHECKS,
  type AccessCheck,
  controlsOf,
  isFailure,
  type Outcome,
  STATE_CHECKS,
  type StateCheck,
} from "./checks.ts";
import type { Presentation, Verification, VerifyContext } from "./context.ts";
import { credentialOf, isKeyOf, notFound } from "./evaluate.ts";
import { identifiedSecret, type Loaded, withKey } from "./identified.ts";
import { identify } from "./identify.ts";
import { limited } from "./limited.ts";
import { load } from "./load.ts";

/** The checks of a verification, in the order in which it makes them. */
export type CheckName = "FORMAT" | "SIGNATURE" | "EXISTENCE" | StateCheck["name"] | AccessCheck["name"] | "LIMITS";

/** One check of a verification with its result, and why. */
export interface ExplainedCheck {
  readonly name: CheckName;
  readonly result: "PASS" | "FAIL" | "SKIPPED";
  readonly detail: string;
}

export type ExplainedSubject = { readonly credential: string } | { readonly keyId: string };

/** A verdict with each check that leads to it. Contains no secret and no digest. */
export interface Explanation {
  /** The verdict of `verify`: the first check that fails, or a valid one. */
  readonly verdict: Verdict;
  readonly credentialType: CredentialType;
  /** The key, if it was found. */
  readonly key: VerifiableKey | null;
  readonly checks: readonly ExplainedCheck[];
  /** The limits of the key and of its actor. */
  readonly limits: readonly LimitStatus[];
}

/** Explains a credential, or the current secret of a key. Returns null if there is no such key. */
export function explain(
  context: VerifyContext,
  subject: ExplainedSubject,
  presentation: Presentation,
): Promise<Explanation | null> {
  return "credential" in subject
    ? explainCredential(context, subject.credential, presentation)
    : explainKeyId(context, subject.keyId, presentation);
}

/**
 * Explains what `verify` says of a credential now. Reads the key from the database and leaves the cache, the counters and the last use as they
 * are. Checks after the first failure are made as well, as far as they do not depend on it.
 */
async function explainCredential(
  context: VerifyContext,
  credential: string,
  presentation: Presentation,
): Promise<Explanation> {
  const credentialType = classify(credential, context.shapes).type;
  const mode = "no-store";
  const call: Verification = { context, mode, caller: undefined, isInBatch: false };
  const identified = await identify(context, credential);
  if ("valid" in identified) return { ...explainUnidentified(identified), credentialType, key: null, limits: [] };
  const first = [WELL_FORMED, signatureOf(credentialType)];
  const found = await load(call, credential, presentation, identified);
  const stored = "valid" in found ? null : found.stored;
  if ("valid" in found || stored === null || !isKeyOf(identified, stored)) {
    const verdict = notFound(credential);
    const absent = [failed("EXISTENCE", verdict), ...skipped(AFTER_EXISTENCE, "there is no key to check")];
    return { verdict, credentialType, key: null, checks: [...first, ...absent], limits: [] };
  }
  return { ...(await explainKey(context, withKey(found.identified, stored), presentation, first)), credentialType };
}

/** Explains the same for the current secret of a key. Returns null if there is no such key. */
async function explainKeyId(
  context: VerifyContext,
  keyId: string,
  presentation: Presentation,
): Promise<Explanation | null> {
  const stored = await context.findKey({ keyId, digests: [] }, "no-store");
  if (stored === null) return null;
  const [secret] = stored.secrets;
  const identified = { ...identifiedSecret(keyId, secret === undefined ? [] : [secret.digest]), kind: null };
  const credentialType = stored.key.kind === "issued" ? "ISSUED_API_KEY" : "IMPORTED_API_KEY";
  const first = skipped(["FORMAT", "SIGNATURE"], "no credential was sent");
  return { ...(await explainKey(context, withKey(identified, stored), presentation, first)), credentialType };
}

const AFTER_EXISTENCE: readonly CheckName[] = [
  ...[...STATE_CHECKS, ...ACCESS_CHECKS].map(({ name }) => name),
  "LIMITS",
];

const WELL_FORMED = passed("FORMAT", "the credential is well-formed");

function explainUnidentified(verdict: Invalid): Pick<Explanation, "verdict" | "checks"> {
  const isMalformed = verdict.reason === "INVALID_FORMAT";
  const why = "not checked: the credential is not authentic";
  const first = isMalformed
    ? [failed("FORMAT", verdict), ...skipped(["SIGNATURE"], why)]
    : [WELL_FORMED, failed("SIGNATURE", verdict)];
  return { verdict, checks: [...first, ...skipped(["EXISTENCE", ...AFTER_EXISTENCE], why)] };
}

function signatureOf(credentialType: CredentialType): ExplainedCheck {
  if (credentialType === "IMPORTED_API_KEY") return skip("SIGNATURE", "an imported key has no signature");
  return passed("SIGNATURE", "the credential was issued by this service and is unaltered");
}

async function explainKey(
  context: VerifyContext,
  { identified, stored, secret }: Loaded,
  presentation: Presentation,
  first: readonly ExplainedCheck[],
): Promise<Omit<Explanation, "credentialType">> {
  const { key } = stored;
  const now = context.clock.now();
  // For the checks that do not depend on the secret.
  const lost = { version: identified.token?.secretVersion ?? 0, expireTime: null };
  const credential = credentialOf(identified, stored, secret ?? lost);
  const outcomes: [keyof typeof DETAILS, Outcome][] = [
    ...STATE_CHECKS.map(({ name, run }): [keyof typeof DETAILS, Outcome] => [name, run(key, secret, identified, now)]),
    ...ACCESS_CHECKS.map(({ name, run }): [keyof typeof DETAILS, Outcome] => [
      name,
      run(controlsOf(credential), presentation, credential),
    ]),
  ];
  const limits = await limitsOfKey(context, credential);
  const limit = limits.find(isExceeded);
  const rejection = outcomes.map(([, outcome]) => outcome).find(isFailure);
  const verdict =
    rejection ?? (limit === undefined ? credential : limited(credential, { statuses: limits, denied: limit }));
  const checks = outcomes.map(([name, outcome]) => describe(name, outcome, credential, presentation));
  const existence = passed("EXISTENCE", `key ${key.keyId}`);
  return { verdict, key, checks: [...first, existence, ...checks, explainLimits(limits)], limits };
}

/** Returns the limits of a key and of its actor without charging them. */
async function limitsOfKey({ charge }: VerifyContext, credential: Valid): Promise<readonly LimitStatus[]> {
  const limits = chargedLimits(credential);
  if (charge === null || limits === null) return [];
  const charges = limits.map(({ name }) => ({ name, cost: 0 }));
  return (await charge(credential, charges)).statuses;
}

/** Returns whether a limit would deny a verification that costs 1. */
function isExceeded({ limit, remaining }: LimitStatus): boolean {
  return remaining === 0 && (isQuota(limit) || (limit.enforcement === "ENFORCED" && !limit.onDemand));
}

function explainLimits(limits: readonly LimitStatus[]): ExplainedCheck {
  if (limits.length === 0) return skip("LIMITS", "neither the key nor its actor has limits");
  const parts = limits.map(({ limit, remaining }) => {
    const size = isQuota(limit) ? limit.limit : limit.burst;
    return `${limit.name}: ${remaining ?? "an unknown part"} of ${size} left`;
  });
  return { name: "LIMITS", result: limits.some(isExceeded) ? "FAIL" : "PASS", detail: parts.join("; ") };
}

function describe(
  name: StateCheck["name"] | AccessCheck["name"],
  outcome: Outcome,
  credential: Valid,
  presentation: Presentation,
): ExplainedCheck {
  const details = DETAILS[name](credential, presentation);
  if (isFailure(outcome)) return failed(name, outcome, details.FAIL);
  return { name, result: outcome, detail: details[outcome] ?? "" };
}

/** The detail of each outcome. The caller may read the key, so a failure names what the key allows. */
type Details = Partial<Record<ExplainedCheck["result"], string>>;

const DETAILS: Readonly<
  Record<StateCheck["name"] | AccessCheck["name"], (credential: Valid, presentation: Presentation) => Details>
> = {
  REVOCATION: () => ({ PASS: "the key is not revoked, and its secret is valid" }),
  EXPIRY: ({ expireTime }) => ({
    PASS: expireTime === null ? "the key does not expire" : `the credential expires at ${expireTime.toISOString()}`,
    FAIL: `the credential expired at ${expireTime?.toISOString()}`,
  }),
  DISABLED: ({ key }) => ({
    PASS: "the key is not disabled",
    FAIL: `the key has been disabled since ${key.disableTime?.toISOString()}`,
  }),
  ADDRESS: ({ key }, { clientIp }) => ({
    PASS: `client_ip is in ${key.allowedCidrs?.join(", ")}`,
    FAIL: `client_ip is ${clientIp === undefined ? "not set; allowed:" : "not in"} ${key.allowedCidrs?.join(", ")}`,
    SKIPPED: "the key is not restricted to specific IP addresses",
  }),
  AUDIENCE: ({ token }, { audience }) => ({
    PASS: `the token is for ${audience}`,
    FAIL: `the token is for ${token?.audience?.join(", ") || "no audience"}; the request names ${audience ?? "none"}`,
    SKIPPED:
      token === null ? "the secret of a key has no audience" : "neither the token nor the request has an audience",
  }),
  SCOPES: ({ scopes }, { requiredScopes }) => ({
    PASS: `the credential has ${requiredScopes.join(", ")}`,
    FAIL: `the credential lacks ${missingScopes(requiredScopes, scopes).join(", ")}`,
    SKIPPED: "no scopes are required",
  }),
};

function passed(name: CheckName, detail: string): ExplainedCheck {
  return { name, result: "PASS", detail };
}

function failed(name: CheckName, { message }: Invalid, detail = message): ExplainedCheck {
  return { name, result: "FAIL", detail };
}

function skip(name: CheckName, detail: string): ExplainedCheck {
  return { name, result: "SKIPPED", detail };
}

function skipped(names: readonly CheckName[], detail: string): ExplainedCheck[] {
  return names.map((name) => skip(name, detail));
}
