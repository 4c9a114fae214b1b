import { authorizeBy } from "../../../src/api/gateways/authorize.ts";
import { CallLimits } from "../../../src/auth/call-limits.ts";
import { createGatewayGuard } from "../../../src/auth/gateway-callers.ts";
import { createGuard } from "../../../src/auth/guard.ts";
import { KeyholdError } from "../../../src/domain/errors.ts";
import type { VerifiableKey } from "../../../src/domain/key.ts";
import { invalid, type RejectionReason, type Valid, type Verdict } from "../../../src/domain/verdict.ts";
import { memoizable } from "../../../src/lib/memoize.ts";

const KEY: VerifiableKey = {
  ...{ keyId: "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10", kind: "issued", actorId: 'a b"é\r\nx: y', scopes: [] },
  ...{ metadata: { plan_id: "ä,%" }, expireTime: null, revokeTime: null, disableTime: null },
  ...{ allowedCidrs: null, restrictedToActorIds: null, rateLimits: null, quotas: null },
};
const VALID: Valid = {
  ...{
    valid: true,
    keyId: KEY.keyId,
    credentialType: "ISSUED_API_KEY",
    key: KEY,
    keyLimits: null,
    secretVersion: 1,
    scopes: ["read", "x:y"],
  },
  ...{ expireTime: null, token: null },
};
const SHARED = memoizable(VALID);

/** What verification does, by credential. Others are the reason of a rejection. */
const BEHAVIOURS: Readonly<Record<string, () => Verdict | Promise<Verdict>>> = {
  valid: () => SHARED,
  unshared: () => VALID,
  later: async () => SHARED,
  unavailable: () => {
    throw new KeyholdError("DATABASE_UNAVAILABLE", "the database is unreachable");
  },
  "unavailable-later": () => Promise.reject(new KeyholdError("OVERLOADED", "too many")),
  limited: () => {
    throw new KeyholdError("RATE_LIMITED", "too many calls");
  },
  fault: () => {
    throw new Error("the cause, which no client may see");
  },
};

const guard = createGuard({
  authenticators: [() => null],
  allowUnauthenticated: true,
});

/** Decides about credentials by their text. */
export const authorize = authorizeBy(
  {
    verify: (_caller, credential, _mode, presentation) => {
      const behave = BEHAVIOURS[credential];
      if (behave === undefined)
        return invalid(credential as RejectionReason, `rejected from ${presentation?.clientIp}`);
      if (presentation?.requiredScopes.includes("admin")) {
        return {
          ...invalid("INSUFFICIENT_SCOPE", "the credential lacks required scopes"),
          missingScopes: ["admin"],
        };
      }
      return behave();
    },
  },
  {
    credentials: [
      { kind: "bearer" },
      ...(["header", "cookie", "query"] as const).map((kind) => ({ kind, name: "x-api-key" })),
    ],
    metadata: ["plan_id", "none"],
  },
);

/** A gateway with the token "no" is refused. */
export function guardBy(tokenHeaders: readonly string[]) {
  return createGatewayGuard({ methods: ["token"], networks: [], guard, limits: new CallLimits(), tokenHeaders });
}

/** Rejections with the status for the client. */
export const REJECTED: readonly (readonly [RejectionReason, number])[] = [
  ...(["INVALID_FORMAT", "SIGNATURE_INVALID", "NOT_FOUND", "KEY_REVOKED"] as const).map((one) => [one, 401] as const),
  ...(["SECRET_ROTATED", "EXPIRED", "DISABLED"] as const).map((one) => [one, 401] as const),
  ...(["IP_NOT_ALLOWED", "AUDIENCE_MISMATCH", "INSUFFICIENT_SCOPE"] as const).map((one) => [one, 403] as const),
  ["INTERNAL", 503],
];
