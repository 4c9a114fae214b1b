import type { GatewayRequest } from "../../api/gateways/authorize.ts";
import { type Requirements, readRequirements } from "../../api/gateways/requirements.ts";
import type { Call } from "../../api/rpc.ts";
import { invalidArgument } from "../../domain/errors.ts";
import type { ClientAddressOf } from "../../lib/client-address.ts";
import { decodeFormText, splitForm } from "../../lib/form-encoding.ts";
import { memoizeFirst } from "../../lib/memoize.ts";

/** A call of a gateway. `fields` returns the values of all headers with this name, in lower case, in order, as they were received. */
type ForwardedCall = Call & { fields(name: string): readonly string[] };

/** Headers in which gateways send the URI of the client: Caddy and Traefik, nginx by convention, ingress-nginx. */
const URI_HEADERS = ["x-forwarded-uri", "x-original-uri", "x-original-url"] as const;

/** The request of a client, by the headers that the gateway has passed. */
export class ForwardAuthRequest implements GatewayRequest {
  readonly requiredScopes;
  readonly charges;
  readonly audience;
  readonly #target: ForwardAuthTarget;
  readonly #call: ForwardedCall;
  readonly #clientAddressOf: ClientAddressOf;

  /** Throws `INVALID_ARGUMENT`. */
  constructor(target: string, call: ForwardedCall, clientAddressOf: ClientAddressOf) {
    this.#target = targetOf(target);
    this.requiredScopes = this.#target.requiredScopes;
    this.charges = this.#target.charges;
    this.audience = this.#target.audience;
    this.#call = call;
    this.#clientAddressOf = clientAddressOf;
    this.#requireOwnQuery();
  }

  get clientIp() {
    return this.#clientAddressOf(this.#call.peerAddress, this.#call.header("x-forwarded-for"));
  }

  header(name: string): readonly string[] {
    return this.#call.fields(name);
  }

  get originalUri() {
    if (this.#target.clientUri !== undefined) return this.#target.clientUri;
    const [uri, ...different] = new Set(URI_HEADERS.flatMap((name) => this.header(name)).map(withoutOrigin));
    if (different.length > 0) throw invalidArgument("headers", `contain two different URIs: ${URI_HEADERS.join(", ")}`);
    return uri;
  }

  /**
   * Rejects an audience and charges of the client: some gateways keep the client's query if the configured URL has none. A charge of 0 would
   * make requests free. Its `required_scopes` need no check, since they only add to what is required.
   */
  #requireOwnQuery(): void {
    const { query, audience, charges } = this.#target;
    if (audience === undefined && charges.length === 0) return;
    const isForeign = URI_HEADERS.some((name) => this.header(name).some((uri) => queryOf(uri) === query));
    if (isForeign)
      throw invalidArgument(
        "query",
        "was copied from the client's request; configure the gateway to send its own query",
      );
  }
}

function withoutOrigin(uri: string): string {
  return uri.replace(/^https?:\/\/[^/?#]*/i, "");
}

function queryOf(uri: string): string | undefined {
  const start = uri.indexOf("?");
  return start === -1 ? undefined : uri.slice(start + 1);
}

export const FORWARD_AUTH_PATH = "/v2alpha1/forwardAuth";

/** What the URL says that a gateway is configured with. */
type ForwardAuthTarget = ReturnType<typeof readTarget>;

/** Characters that may follow the path. */
const DELIMITERS = ["", "?", ";", "/"];

/** Returns whether a request target is that of the forward-auth endpoint. */
export function isForwardAuth(target: string): boolean {
  return target.startsWith(FORWARD_AUTH_PATH) && DELIMITERS.includes(target.charAt(FORWARD_AUTH_PATH.length));
}

/** Maximum number of configured targets that are kept; each is about 1 KB. */
const MAX_TARGETS = 64;

/** Memoizes targets without a part of the client. */
export const targetOf = memoizeFirst(MAX_TARGETS, readTarget, ({ clientUri }) => clientUri === undefined);

/**
 * Reads the target of a request, which must be one of the endpoint:
 *
 * - `/v2alpha1/forwardAuth?required_scopes=read&audience=orders`, as most gateways are configured.
 * - `/v2alpha1/forwardAuth;required_scopes=read;audience=orders/the/path?the=query` for gateways that append the path and query of the
 *   client to a configured prefix (Envoy's `path_prefix`). The parameters end at the first `/`, with which a client's path begins, so
 *   nothing in it is configuration.
 *
 * If a gateway that is configured with the first form appends all the same, the client's path becomes part of the last value. A scope with
 * a path is one that no key has, and further scopes only add to it. Throws `INVALID_ARGUMENT`.
 *
 * `clientUri` is what the gateway has appended, `query` what is taken for configuration, or empty.
 */
export function readTarget(target: string) {
  const rest = target.slice(FORWARD_AUTH_PATH.length);
  if (rest.startsWith("?"))
    return { ...readParameters(splitForm(rest.slice(1))), clientUri: undefined, query: rest.slice(1) };
  const slash = rest.indexOf("/");
  const parameters = slash === -1 ? rest : rest.slice(0, slash);
  if (parameters.includes("?"))
    throw invalidArgument("query", "must follow the path of the client's request, as in ;audience=orders/path?query");
  const clientUri = slash === -1 ? undefined : rest.slice(slash);
  return { ...readParameters(splitForm(parameters.replaceAll(";", "&"))), clientUri, query: "" };
}

function readParameters(pairs: readonly (readonly [name: string, value: string])[]): Requirements {
  const decoded = pairs.map(([encodedName, encodedValue]) => {
    const [name, value] = [decodeFormText(encodedName), decodeFormText(encodedValue)];
    if (name === undefined || value === undefined) throw invalidArgument("query", "has a malformed percent-encoding");
    return [name, value] as const;
  });
  return readRequirements(decoded);
}
