import { metadataHeader } from "../../api/gateways/identity-headers.ts";
import { GATEWAY_CALLER_METHODS } from "../../auth/gateway-callers.ts";
import { invalidArgument } from "../../domain/errors.ts";
import type { CredentialPlace } from "../../lib/request-credential.ts";
import { type Get, integer, list, names, networks } from "./values.ts";

/** Returns the configuration for gateways. Throws `INVALID_ARGUMENT` naming the variable. */
export function toGateways(get: Get) {
  const [port, host] = [get("KEYHOLD_GATEWAY_PORT"), get("KEYHOLD_GATEWAY_HOST")];
  if (port === undefined && host !== undefined) {
    throw invalidArgument("KEYHOLD_GATEWAY_HOST", "requires KEYHOLD_GATEWAY_PORT");
  }
  const gateways = {
    /** Empty: the endpoints do not exist. */
    protocols: names("KEYHOLD_GATEWAYS", get("KEYHOLD_GATEWAYS"), ["forward-auth", "ext-authz"]),
    callers: names("KEYHOLD_GATEWAY_CALLERS", get("KEYHOLD_GATEWAY_CALLERS") ?? "token", GATEWAY_CALLER_METHODS),
    networks: networks("KEYHOLD_GATEWAY_NETWORKS", get("KEYHOLD_GATEWAY_NETWORKS")),
    /** A file with the certificates of the CA of gateways; null: no client certificate is requested. */
    clientCaFile: get("KEYHOLD_GATEWAY_CLIENT_CA_FILE") ?? null,
    /** Null: the port of the service. */
    address:
      port === undefined ? null : { host: host ?? "127.0.0.1", port: integer("KEYHOLD_GATEWAY_PORT", port, 0, 65535) },
    /** Where clients may put their credential. */
    credentials: unique(
      "KEYHOLD_GATEWAY_CREDENTIALS",
      list(get("KEYHOLD_GATEWAY_CREDENTIALS") ?? "bearer,header:x-api-key").map(credentialPlace),
      (place) => ("name" in place ? `${place.kind}:${place.name}` : place.kind),
    ),
    /** Keys of the metadata that are returned as headers. */
    metadata: unique(
      "KEYHOLD_GATEWAY_METADATA",
      list(get("KEYHOLD_GATEWAY_METADATA")).map(metadataKey),
      metadataHeader,
    ),
  };
  const { callers } = gateways;
  if (gateways.address !== null && gateways.protocols.length === 0) {
    throw invalidArgument("KEYHOLD_GATEWAY_PORT", "requires KEYHOLD_GATEWAYS");
  }
  if (callers.includes("network") !== gateways.networks.length > 0) {
    throw invalidArgument(
      "KEYHOLD_GATEWAY_NETWORKS",
      "must be set if and only if KEYHOLD_GATEWAY_CALLERS contains network",
    );
  }
  if (callers.includes("mtls") !== (gateways.clientCaFile !== null)) {
    throw invalidArgument(
      "KEYHOLD_GATEWAY_CLIENT_CA_FILE",
      "must be set if and only if KEYHOLD_GATEWAY_CALLERS contains mtls",
    );
  }
  return gateways;
}

/** A token (RFC 9110 §5.6.2), also for cookies (RFC 6265 §4.1.1) and parameters. */
const NAMED_PLACE = /^(header|cookie|query):([\w!#$%&'*+.^`|~-]{1,64})$/;

/** Headers that have another meaning, or that the gateway writes. */
const OTHER_HEADERS =
  /^(?:authorization|cookie|host|connection|content-.*|transfer-encoding|x-forwarded-.*|x-keyhold-.*)$/i;

function credentialPlace(text: string): CredentialPlace {
  if (text === "bearer") return { kind: "bearer" };
  const [, kind, name = ""] = NAMED_PLACE.exec(text) ?? [];
  if (kind === "cookie" || kind === "query") return { kind, name };
  if (kind === "header" && !OTHER_HEADERS.test(name)) return { kind, name: name.toLowerCase() };
  const message = `has an invalid entry ${JSON.stringify(text)}: use a comma-separated list of bearer, header:<name>, cookie:<name> or query:<name>`;
  throw invalidArgument("KEYHOLD_GATEWAY_CREDENTIALS", message);
}

/** The characters that a name of a header can show. */
function metadataKey(text: string): string {
  if (/^[\w.-]{1,64}$/.test(text)) return text;
  const message = `has an invalid entry ${JSON.stringify(text)}: use a comma-separated list of names that contain only letters, digits, "_", "." and "-"`;
  throw invalidArgument("KEYHOLD_GATEWAY_METADATA", message);
}

function unique<T>(variable: string, items: readonly T[], nameOf: (item: T) => string): readonly T[] {
  const names = items.map(nameOf);
  const twice = names.find((name, place) => names.indexOf(name) !== place);
  if (twice !== undefined) throw invalidArgument(variable, `has ${JSON.stringify(twice)} twice`);
  return items;
}
