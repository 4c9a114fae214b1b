import { MAX_CREDENTIAL_BYTES } from "../../domain/limits.ts";
import type { Principal } from "../../domain/principal.ts";
import type { LimitStatus } from "../../domain/rate-limit.ts";
import { invalid, type Valid, type Verdict } from "../../domain/verdict.ts";
import { andThen, type MaybePromise } from "../../lib/maybe-promise.ts";
import { memoizable } from "../../lib/memoize.ts";
import { type CredentialPlace, type CredentialSource, findCredential } from "../../lib/request-credential.ts";
import { limitFields } from "../limit-fields.ts";
import { logVerdict } from "../log-fields.ts";
import type { ApiContext } from "../row.ts";
import type { Call } from "../rpc.ts";
import { type GatewayDecision, malformed, NO_STORE, rejected, UNAUTHENTICATED } from "./decision.ts";
import { identityHeaders, identityOf } from "./identity-headers.ts";
import type { Requirements } from "./requirements.ts";

/** What a gateway asks about the request of a client, independent of the protocol. */
export interface GatewayRequest extends CredentialSource, Requirements {
  /** By trusted proxies only; empty if unknown. */
  readonly clientIp: string;
}

export interface GatewaySettings {
  /** Where clients may put their credential. */
  readonly credentials: readonly CredentialPlace[];
  /** Keys of the metadata that are returned as headers. */
  readonly metadata: readonly string[];
}

export type Authorize = ReturnType<typeof authorizeBy>;

const TOO_LONG = invalid("INVALID_FORMAT", "the credential is too long");

const NO_LIMITS: readonly LimitStatus[] = [];

const MISSING = memoizable({ verdict: "MISSING" });
const MALFORMED = memoizable({ verdict: "MALFORMED" });

/**
 * Returns the function that decides about the requests that gateways ask about, whatever the protocol. The caller is the gateway. It throws or
 * rejects if there is no verdict, as without a database: `failed` returns the decision then.
 */
export function authorizeBy({ verify }: Pick<ApiContext, "verify">, settings: GatewaySettings) {
  const { credentials, metadata } = settings;
  return (request: GatewayRequest) =>
    (caller: Principal, call: Call): MaybePromise<GatewayDecision> => {
      const credential = findCredential(credentials, request);
      if (typeof credential !== "string") {
        call.log.add(credential === undefined ? MISSING : MALFORMED);
        return credential === undefined ? UNAUTHENTICATED : malformed(credential.problem);
      }
      // Not by the header Cache-Control, which is the client's: it would make every request a read of the database.
      const verdict =
        credential.length > MAX_CREDENTIAL_BYTES ? TOO_LONG : verify(caller, credential, "default", request);
      return andThen(verdict, (verdict: Verdict) => {
        logVerdict(call.log, verdict);
        return verdict.valid ? new Allowed(verdict, metadata) : rejected(verdict, request.requiredScopes);
      });
    };
}

/** The decision to pass a request. Its fields are read on use: with an encoded answer none is. */
class Allowed implements GatewayDecision {
  readonly status = 200;
  readonly body = "";
  readonly #verdict: Valid;
  readonly #metadata: readonly string[];

  constructor(verdict: Valid, metadata: readonly string[]) {
    this.#verdict = verdict;
    this.#metadata = metadata;
  }

  get answers() {
    return this.#verdict.answers;
  }

  get identity() {
    return identityOf(this.#verdict, this.#metadata);
  }

  get limitHeaders() {
    return Object.entries(limitFields(this.#verdict.limits ?? NO_LIMITS));
  }

  get headers() {
    return [NO_STORE, ...identityHeaders(this.identity)];
  }
}
