import { type ClientAddressOf, clientAddressBehind, parseNetworks } from "../lib/client-address.ts";
import { type Monotonic, systemClock, systemMonotonic } from "../lib/clock.ts";
import { type CredentialPlace, findCredential } from "../lib/request-credential.ts";
import { limitHeaders, type Rejection, reject, rejectAs, rejectCredential } from "./rejection.ts";
import {
  type Charge,
  requireScopes,
  type VerifiedCredential,
  type VerifiedKey,
  type VerifiedToken,
  type Verifier,
} from "./verdict.ts";

/** `R` is the request type of the framework. */
export interface AdmissionOptions<R = unknown> {
  /** Scopes that the credential must have, all of them: at most 32. */
  readonly requiredScopes?: readonly string[];
  /** The name of this service as an audience. Without it, a token that is made for an audience is rejected. */
  readonly audience?: string;
  /** What a request costs by limits of the key, by name; 1 by others. Only `createKeyVerifier` charges limits. */
  readonly charges?: readonly Charge[];
  /**
   * Addresses and CIDR blocks of the proxies in front of this service, such as `10.0.0.0/8`: only they may name the client in
   * `X-Forwarded-For`. By default, the client is the peer of the connection. Behind a proxy that is not listed here, a key that is
   * restricted to addresses is rejected.
   */
  readonly trustedProxies?: readonly string[];
  /** `realm` of `WWW-Authenticate` (RFC 9110 §11.5); `api` by default. */
  readonly realm?: string;
  /**
   * Called when a request is answered 503 because its credential could not be verified. The error names the cause and contains no
   * credential. By default the process emits a warning, at most every ten seconds.
   *
   * @example `onError: (error, request) => request.log.error(error)`
   */
  readonly onError?: (error: Error, request: R) => void;
}

/** A verified credential of any verifier. Fields that only one verifier knows may be absent. */
export type AdmittedCredential = VerifiedCredential &
  Partial<Pick<VerifiedKey, "credentialType" | "metadata" | "limits">> &
  Partial<Pick<VerifiedToken, "tokenId" | "issueTime" | "parentId" | "audience" | "claims">>;

/** Request headers as in Node: names in lower case. */
export type RequestHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/** Every field of a request: `headers` of Node has only the first `Authorization` (Node docs, `message.headers`). */
interface Fields {
  readonly headersDistinct?: Readonly<Record<string, readonly string[] | undefined>>;
}

/** What is read of a request. */
export interface AdmittedRequest extends Fields {
  readonly headers: RequestHeaders;
  /** The request of Node, in frameworks with their own. */
  readonly raw?: Fields;
  /** The connection. A Unix socket has no address. */
  readonly socket: { readonly remoteAddress?: string | undefined };
}

export type Admission<T extends VerifiedCredential> =
  | {
      readonly admitted: true;
      readonly credential: T;
      /** To add to the response: the states of the limits of the key. */
      readonly headers: Readonly<Record<string, string>>;
    }
  | Rejection;

/**
 * Returns a function that authenticates and authorizes requests, and reports those answered 503 to `onError`. Throws a `TypeError` for
 * options that no request could meet.
 */
export function createAdmission<R extends AdmittedRequest, T extends VerifiedCredential>(
  verifier: Verifier<T>,
  { onError = warnAtIntervals(), trustedProxies = [], ...options }: AdmissionOptions<R> = {},
): (request: R) => Promise<Admission<T>> {
  requireValid(options);
  const networks = parseNetworks(trustedProxies);
  if ("problem" in networks) throw new TypeError(`trustedProxies: ${networks.problem}`);
  const addressOf = clientAddressBehind(networks.cidrs);
  return async (request) => {
    const admission = await admit(request, verifier, addressOf, options);
    if (!admission.admitted && admission.error !== undefined) onError(admission.error, request);
    return admission;
  };
}

const PLACES: readonly CredentialPlace[] = [{ kind: "bearer" }, { kind: "header", name: "x-api-key" }];

/**
 * Checks the credential in `Authorization: Bearer` or `X-API-Key`, and responds as RFC 6750 §3 says: 401 without a valid credential, 403
 * without the scopes, 429 if a limit of the key is exceeded (RFC 6585 §4), 400 with two credentials (§2) or a malformed one; 503 if it could not be verified.
 */
async function admit<T extends VerifiedCredential>(
  { headers, headersDistinct, raw, socket }: AdmittedRequest,
  verifier: Verifier<T>,
  addressOf: ClientAddressOf,
  { requiredScopes = [], audience, charges, realm = "api" }: Requirements,
): Promise<Admission<T>> {
  const all: RequestHeaders = headersDistinct ?? raw?.headersDistinct ?? headers;
  const header = (name: string) => [all[name] ?? []].flat();
  const credential = findCredential(PLACES, { header, originalUri: undefined });
  if (credential === undefined)
    // §3.1: without authentication information, no error code.
    return reject(401, "send a credential in the Authorization: Bearer header or the X-API-Key header", { realm });
  if (typeof credential !== "string") return rejectAs("invalid_request", credential.problem, { realm });
  const clientIp = addressOf(socket.remoteAddress ?? "", headers["x-forwarded-for"]?.toString());
  const verdict = await verifier.verify(credential, { clientIp, requiredScopes, audience, charges });
  // A verifier of another make may ignore the scopes.
  const required = verdict.ok ? requireScopes(verdict.credential, requiredScopes) : verdict;
  const now = systemClock.now();
  if (!required.ok) return rejectCredential(required, realm, requiredScopes, now);
  const { credential: verified } = required;
  const { limits = [] } = verified as T & Pick<VerifiedKey, "limits">;
  return { admitted: true, credential: verified, headers: limitHeaders(limits, now) };
}

const MAX_REQUIRED_SCOPES = 32;
/** A scope or an audience. */
const NAME = /^[!-~]{1,255}$/;

type Requirements = Pick<AdmissionOptions, "requiredScopes" | "audience" | "charges" | "realm">;

function requireValid({ requiredScopes = [], audience, realm = "" }: Requirements): void {
  if (requiredScopes.length > MAX_REQUIRED_SCOPES || !requiredScopes.every((scope) => NAME.test(scope)))
    throw new TypeError(
      `requiredScopes: at most ${MAX_REQUIRED_SCOPES} scopes of 1 to 255 visible ASCII characters each`,
    );
  if (audience !== undefined && !NAME.test(audience))
    throw new TypeError("audience: must be 1 to 255 visible ASCII characters");
  if (!/^[ -~]*$/.test(realm)) throw new TypeError("realm: must be printable ASCII");
}

/** Milliseconds between warnings: during an outage every request fails. */
const WARNING_INTERVAL = 10_000;

/** Returns a listener that emits a process warning, which Node writes to standard error, at most every ten seconds. */
export function warnAtIntervals(monotonic: Monotonic = systemMonotonic): (error: Error) => void {
  let silentUntil = Number.NEGATIVE_INFINITY;
  return ({ message }) => {
    if (monotonic() < silentUntil) return;
    silentUntil = monotonic() + WARNING_INTERVAL;
    const text = `responded with 503 to a request: ${message} (set onError to receive every such error)`;
    process.emitWarning(text, { type: "KeyholdWarning" });
  };
}
