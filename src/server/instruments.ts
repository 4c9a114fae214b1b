import { CallLimits, type Limiters } from "../auth/call-limits.ts";
import { type CredentialType, type Verdict, verificationErrorOf } from "../domain/verdict.ts";
import { CallTallies } from "../observability/metrics/calls.ts";
import { Counts } from "../observability/metrics/counts.ts";
import { ConcurrencyLimiter } from "../transport/concurrency-limiter.ts";

/** The counters of this process that are not read from elsewhere in a scrape. */
export class Instruments {
  readonly calls = new CallTallies();
  readonly limiter = new ConcurrencyLimiter();
  readonly verdicts = new Counts<CredentialType, string>("credential_type", "result");
  readonly limits: CallLimits;
  staleVerdicts = 0;

  constructor(limiters: Limiters) {
    this.limits = new CallLimits(limiters);
  }

  readonly onVerdict = (credentialType: CredentialType, verdict: Verdict): void => {
    this.verdicts.add(credentialType, verdict.valid ? "VALID" : resultOf(verdict.reason));
  };
}

type Reason = Parameters<typeof verificationErrorOf>[0];

/** Returns the error code of a verdict as callers see it, without its prefix. */
function resultOf(reason: Reason): string {
  return verificationErrorOf(reason).slice("VERIFICATION_ERROR_".length);
}
