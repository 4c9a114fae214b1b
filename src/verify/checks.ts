import { isExpired, type VerifiableKey } from "../domain/key.ts";
import { type Invalid, invalid, type RejectionReason, type Valid, type Verdict } from "../domain/verdict.ts";
import { allowsAddress } from "../lib/cidr.ts";
import { missingScopes } from "../lib/missing-scopes.ts";
import type { Presentation } from "./context.ts";
import type { Credential, SecretVersion } from "./identified.ts";

/** The result of a check: why it fails, or whether it passes or does not apply. */
export type Outcome = Invalid | "PASS" | "SKIPPED";

/**
 * A check that depends on the key, the credential and the time alone. `secret` is undefined if the key does not have it any more; `now` in
 * milliseconds.
 */
export interface StateCheck {
  readonly name: "REVOCATION" | "EXPIRY";
  run(key: VerifiableKey, secret: SecretVersion | undefined, identified: Credential, now: number): Outcome;
}

/** What the checks of a presentation read of a credential, which a cached one has without being decoded. */
export interface Controls {
  readonly isDisabled: boolean;
  readonly allowedCidrs: readonly string[] | null;
  /** The services that may accept a token; undefined: any. Null: it is the secret of a key, which has no audience. */
  readonly audience: readonly string[] | undefined | null;
  readonly scopes: readonly string[];
}

/** A check of a credential that is in force, where it is presented. */
export interface AccessCheck {
  readonly name: "DISABLED" | "ADDRESS" | "AUDIENCE" | "SCOPES";
  run(controls: Controls, presentation: Presentation, credential: Valid): Outcome;
}

export function controlsOf({ key, token, scopes }: Valid): Controls {
  const { disableTime, allowedCidrs } = key;
  return { isDisabled: disableTime !== null, allowedCidrs, audience: token === null ? null : token.audience, scopes };
}

/** Returns the verdict on a credential in force, where it is presented. */
export function present(credential: Valid, controls: Controls, presentation: Presentation): Verdict {
  for (const check of ACCESS_CHECKS) {
    const outcome = check.run(controls, presentation, credential);
    if (isFailure(outcome)) return outcome;
  }
  return credential;
}

/** The checks of a key that exists, in the order in which verification makes them, before `ACCESS_CHECKS`. */
export const STATE_CHECKS: readonly StateCheck[] = [
  {
    name: "REVOCATION",
    run: (key, secret, _, now) => {
      if (secret === undefined || (secret.expireTime !== null && secret.expireTime.getTime() <= now)) {
        return invalid("SECRET_ROTATED", "the secret was replaced by a rotation", key.keyId);
      }
      return key.revokeTime === null ? "PASS" : invalid("KEY_REVOKED", "the key is revoked", key.keyId);
    },
  },
  {
    name: "EXPIRY",
    run: (key, _, { token, credentialType }, now) => {
      if (token !== null && token.expireTime <= now) {
        const what = credentialType === "MACAROON" ? "macaroon" : "token";
        return invalid("EXPIRED", `the ${what} has expired`, key.keyId);
      }
      return isExpired(key, now) ? invalid("EXPIRED", "the key has expired", key.keyId) : "PASS";
    },
  },
];

export const ACCESS_CHECKS: readonly AccessCheck[] = [
  {
    name: "DISABLED",
    run: ({ isDisabled }, _, credential) =>
      isDisabled ? denied("DISABLED", "the key is disabled", credential) : "PASS",
  },
  {
    name: "ADDRESS",
    run: ({ allowedCidrs }, presentation, credential) => {
      if (allowedCidrs === null) return "SKIPPED";
      // Some presentations determine the address only when it is read.
      const { clientIp } = presentation;
      if (clientIp === undefined)
        return denied("IP_NOT_ALLOWED", "the key is restricted by IP, but client_ip is not set", credential);
      if (allowsAddress(allowedCidrs, clientIp)) return "PASS";
      return denied("IP_NOT_ALLOWED", "the key may not be used from this address", credential);
    },
  },
  {
    name: "AUDIENCE",
    run: ({ audience: allowed }, { audience }, credential) => {
      // Only what is derived from the secret of a key is made for an audience.
      if (allowed === null) return "SKIPPED";
      if (allowed?.length === 0)
        return denied("AUDIENCE_MISMATCH", "the caveats of the macaroon allow no audience", credential);
      if (audience === null) return "SKIPPED";
      if (audience === undefined) {
        if (allowed === undefined) return "SKIPPED";
        return denied("AUDIENCE_MISMATCH", "the token has an audience, but the request specifies none", credential);
      }
      if (allowed?.includes(audience)) return "PASS";
      // RFC 7519 §4.1.3; like most JWT libraries, a token without an audience is not for the one that is required.
      return denied("AUDIENCE_MISMATCH", "the token is not for this audience", credential);
    },
  },
  {
    name: "SCOPES",
    run: (controls, { requiredScopes }, credential) => {
      if (requiredScopes.length === 0) return "SKIPPED";
      const missing = missingScopes(requiredScopes, controls.scopes);
      if (missing.length === 0) return "PASS";
      const denial = denied("INSUFFICIENT_SCOPE", "the credential lacks required scopes", credential);
      return { ...denial, missingScopes: missing };
    },
  },
];

function denied(reason: RejectionReason, message: string, credential: Valid): Invalid {
  return { ...invalid(reason, message, credential.keyId), credential };
}

/** Returns whether an outcome is a rejection. */
export function isFailure(outcome: Outcome): outcome is Invalid {
  return typeof outcome === "object";
}
