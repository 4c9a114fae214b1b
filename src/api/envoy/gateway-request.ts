import { invalidArgument } from "../../domain/errors.ts";
import type { ClientAddressByEnvoy } from "../../lib/client-address.ts";
import type { GatewayRequest } from "../gateways/authorize.ts";
import { type Requirements, readRequirements } from "../gateways/requirements.ts";
import type { CheckedRequest } from "./check-request.ts";

/** The request of a client, as Envoy describes it. */
export class EnvoyRequest implements GatewayRequest {
  readonly #checked: CheckedRequest;
  readonly #requirements: Requirements;
  readonly #clientAddressOf: ClientAddressByEnvoy;

  /** Throws `INVALID_ARGUMENT`. */
  constructor(checked: CheckedRequest, clientAddressOf: ClientAddressByEnvoy) {
    if (!checked.isHttp) throw invalidArgument("attributes.request.http", "is required", "FIELD_REQUIRED");
    this.#checked = checked;
    this.#requirements = requirementsOf(checked.extensions);
    this.#clientAddressOf = clientAddressOf;
  }

  get requiredScopes() {
    return this.#requirements.requiredScopes;
  }

  get audience() {
    return this.#requirements.audience;
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

  get originalUri() {
    return this.#checked.path;
  }

  #joined(name: string): string | undefined {
    const values = this.header(name);
    return values.length === 0 ? undefined : values.join(", ");
  }
}

/** Maximum number of settings of routes that are kept; each is about 1 KB. */
const MAX_SETTINGS = 64;

const requirementsBySettings = new Map<string, Requirements>();

/** Memoizes `readRequirements`: Envoy sends the settings of a route with each of its requests. */
function requirementsOf(settings: CheckedRequest["extensions"]): Requirements {
  const text = JSON.stringify(settings);
  const existing = requirementsBySettings.get(text);
  if (existing !== undefined) return existing;
  const requirements = readRequirements(Object.entries(settings));
  if (requirementsBySettings.size < MAX_SETTINGS) requirementsBySettings.set(text, requirements);
  return requirements;
}
