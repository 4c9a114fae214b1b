import type { GatewayRequest } from "../../api/gateways/authorize.ts";
import type { Call } from "../../api/rpc.ts";
import { invalidArgument } from "../../domain/errors.ts";
import type { ClientAddressOf } from "../../lib/client-address.ts";
import { type ForwardAuthTarget, targetOf } from "./forward-auth-target.ts";

/** A call of a gateway, with the headers of its client as they were received. */
export interface ForwardedCall extends Call {
  /** Returns the values of all fields with this name, in lower case, in order. */
  fields(name: string): readonly string[];
}

/** Headers in which gateways send the URI of the client: Caddy and Traefik, nginx by convention, ingress-nginx. */
const URI_HEADERS = ["x-forwarded-uri", "x-original-uri", "x-original-url"] as const;

/** The request of a client, by the headers that the gateway has passed. */
export class ForwardAuthRequest implements GatewayRequest {
  readonly #target: ForwardAuthTarget;
  readonly #call: ForwardedCall;
  readonly #clientAddressOf: ClientAddressOf;

  /** Throws `INVALID_ARGUMENT`. */
  constructor(target: string, call: ForwardedCall, clientAddressOf: ClientAddressOf) {
    this.#target = targetOf(target);
    this.#call = call;
    this.#clientAddressOf = clientAddressOf;
    this.#requireOwnQuery();
  }

  get requiredScopes() {
    return this.#target.requiredScopes;
  }

  get audience() {
    return this.#target.audience;
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
   * Rejects an audience of the client: some gateways keep the client's query if the configured URL has none. Its `required_scopes` need no
   * check, since they only add to what is required.
   */
  #requireOwnQuery(): void {
    const { query, audience } = this.#target;
    if (audience === undefined) return;
    const isForeign = URI_HEADERS.some((name) => this.header(name).some((uri) => queryOf(uri) === query));
    if (isForeign)
      throw invalidArgument(
        "query",
        "is the query of the client's request; configure the gateway to send its own query",
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
