import { create } from "@bufbuild/protobuf";
import { VerifyApiKeyRequestSchema } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { invalidArgument, invalidArguments, KeyholdError } from "../domain/errors.ts";
import { createTimeOf } from "../domain/key.ts";
import type { Principal } from "../domain/principal.ts";
import { invalid, isLimitExceeded, type Verdict } from "../domain/verdict.ts";
import { andThen, type MaybePromise } from "../lib/maybe-promise.ts";
import { numericDate, splitScopes } from "../token/jwt/claims.ts";
import type { Presentation } from "../verify/context.ts";
import { retryAfterOf } from "./limit-fields.ts";
import { logVerdict } from "./log-fields.ts";
import { requireAdmitted } from "./own-limits.ts";
import type { ApiContext } from "./row.ts";
import type { Call } from "./rpc.ts";
import { checkOf } from "./rules.ts";
import { cacheModeOf } from "./v2alpha1/verification.ts";

/** The parameters of a request by name, each with a value. */
export type FormParameters = ReadonlyMap<string, string>;

export type Introspection = ReturnType<typeof describe>;

/** Also for every rejected credential: RFC 7662 §2.2 forbids to say why. */
const INACTIVE = Object.freeze({ active: false } as const);

export type Introspect = ReturnType<typeof introspectBy>;

/** Returns the handler of token introspection (RFC 7662), which verifies like `VerifyApiKey`. */
export function introspectBy({ verify, issuer }: Pick<ApiContext, "verify" | "issuer">) {
  return (parameters: FormParameters) => {
    const { credential, violations, presentation } = readRequest(parameters);
    const [violation] = violations;
    return (caller: Principal, call: Call): MaybePromise<Introspection> => {
      const verdict =
        violation === undefined
          ? verify(caller, credential, cacheModeOf(call), presentation)
          : invalid("INVALID_FORMAT", violation.description);
      return andThen(verdict, (verdict) => {
        requireAdmitted(verdict, call.log);
        logVerdict(call.log, verdict);
        requireWithinLimits(verdict);
        return describe(verdict, issuer);
      });
    };
  };
}

/** A credential whose limit is exceeded is active, and must not be accepted now: the caller is asked to try again. */
function requireWithinLimits(verdict: Verdict): void {
  if (verdict.valid || !isLimitExceeded(verdict.reason)) return;
  const { message, limits = [] } = verdict;
  throw new KeyholdError("RATE_LIMITED", message, { retryAfter: retryAfterOf(limits) });
}

/** Returns the request, and why its credential can be none. Throws `INVALID_ARGUMENT` naming the parameters that are invalid. */
function readRequest(parameters: FormParameters) {
  const credential = parameters.get("token");
  if (credential === undefined) throw invalidArgument("token", "is required", "FIELD_REQUIRED");
  if (parameters.has("client_secret")) {
    throw invalidArgument(
      "client_secret",
      "must not be set; authenticate with the Authorization header",
      "VALUE_NOT_ALLOWED",
    );
  }
  const clientIp = parameters.get("client_ip");
  const requiredScopes = splitScopes(parameters.get("required_scopes") ?? "");
  const audience = parameters.get("audience");
  const message = create(VerifyApiKeyRequestSchema, { credential, clientIp, requiredScopes, audience });
  const all = checkOf(VerifyApiKeyRequestSchema)(message);
  const ofOthers = all.filter(({ field }) => field !== "credential");
  if (ofOthers.length > 0) throw invalidArguments(ofOthers);
  // The protected resource compares `aud` itself (RFC 7662 §4), unless it leaves that to Keyhold.
  const presentation: Presentation = { clientIp, requiredScopes, audience: audience ?? null };
  return { credential, violations: all, presentation };
}

/** Returns the response to a request (RFC 7662 §2.2). A key is what an OAuth server calls a client's access. */
function describe(verdict: Verdict, issuer: string) {
  if (!verdict.valid) return INACTIVE;
  const { key, scopes, expireTime, token } = verdict;
  const id = token?.tokenId ?? key.keyId;
  return {
    active: true,
    ...(scopes.length > 0 && { scope: scopes.join(" ") }),
    client_id: key.keyId,
    sub: key.actorId,
    // How a client presents it, whatever the kind of credential (RFC 6750).
    token_type: "Bearer",
    ...(expireTime !== null && { exp: numericDate(expireTime.getTime()) }),
    iat: numericDate(createTimeOf(id)),
    iss: issuer,
    jti: id,
    ...(token?.audience !== undefined && { aud: token.audience }),
  };
}
