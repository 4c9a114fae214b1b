import { parseDuration } from "../../domain/duration.ts";
import { invalidArgument } from "../../domain/errors.ts";
import type { TokenLimits } from "../../keys/ports.ts";
import { RESERVED_CLAIMS } from "../../token/jwt/claims.ts";
import { list } from "./values.ts";

/** Returns what derived tokens may have. A name that is not registered is allowed anyway, and may be registered in a later release. */
export function toTokenLimits(maxTtl = "30d", allowedClaims: string | undefined): TokenLimits {
  const allowed = list(allowedClaims);
  const reserved = allowed.find((name) => RESERVED_CLAIMS.has(name));
  if (reserved !== undefined)
    throw invalidArgument("KEYHOLD_ALLOWED_CLAIMS", `has ${reserved}, a claim that Keyhold itself sets`);
  return { maxTtl: parseDuration(maxTtl, "KEYHOLD_MAX_TOKEN_TTL"), allowedClaims: new Set(allowed) };
}
