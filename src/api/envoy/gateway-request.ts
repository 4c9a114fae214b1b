import { invalidArgument } from "../../domain/errors.ts";
import type { ClientAddressByEnvoy } from "../../lib/client-address.ts";
import { memoizeFirst } from "../../lib/memoize.ts";
import type { GatewayRequest } from "../gateways/authorize.ts";
import { readRequirements } from "../gateways/requirements.ts";
import type { CheckedRequest } from "./check-request.ts";

/** The request of a client, as Envoy describes it. */
export class EnvoyRequest implements GatewayRequest {
  readonly #checked: CheckedRequest;
  readonly requiredScopes;
  readonly charges;
  readonly audience;
  readonly originalUri;
  readonly #clientAddressOf: ClientAddressByEnvoy;

  /** Throws `INVALID_ARGUMENT`. */
  constructor(checked: CheckedRequest, clientAddressOf: ClientAddressByEnvoy) {
    if (!checked.isHttp) throw invalidArgument("attributes.request.http", "is required", "FIELD_REQUIRED");
    this.#checked = checked;
    const { requiredScopes, audience, charges } = requirementsOf(JSON.stringify(checked.extensions));
    this.requiredScopes = requiredScopes;
    this.charges = charges;
    this.audience = audience;
    this.originalUri = checked.path;
    this.#clientAddressOf = clientAddressOf;
  }

  get clientIp() {
    return this.#clientAddressOf(this.#checked.source, {
      external: this.#joined("x-envoy-external-address"),
      forwardedFor: this.#joined("x-forwarded-for"),
    });
  }

  header(name: string): readonly string[] {
    const { fields } = this.#checked;
    const values: string[] = [];
    for (let at = 0; at + 1 < fields.length; at += 2) if (fields[at] === name) values.push(fields[at + 1] ?? "");
    return values;
  }

  #joined(name: string): string | undefined {
    const values = this.header(name);
    return values.length === 0 ? undefined : values.join(", ");
  }
}

/** Maximum number of settings of routes that are kept; each is about 1 KB. */
const MAX_SETTINGS = 64;

/** By the JSON of the settings of a route, which Envoy sends with each of its requests. */
const requirementsOf = memoizeFirst(MAX_SETTINGS, (settings) =>
  readRequirements(Object.entries<string>(JSON.parse(settings))),
);
