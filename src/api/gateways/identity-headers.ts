import type { Valid } from "../../domain/verdict.ts";

/** A header field; the name in lower case. */
export type HeaderField = readonly [name: string, value: string];

/** Who a credential belongs to, for the application behind a gateway. */
export type GatewayIdentity = ReturnType<typeof identityOf>;

/** The start of all names of identity headers, which no client may send to an application. */
export const IDENTITY_PREFIX = "x-keyhold-";

/** Returns the name of the header for a key of the metadata: `x-keyhold-metadata-plan-id` for `plan_id`. */
export function metadataHeader(key: string): string {
  return `${IDENTITY_PREFIX}metadata-${key.toLowerCase().replace(/[^a-z0-9]+/g, "-")}`;
}

/** Metadata that the key does not have is empty. */
export function identityOf({ key, scopes }: Valid, metadataKeys: readonly string[]) {
  const { keyId, actorId, metadata } = key;
  const value = (name: string) => (Object.hasOwn(metadata, name) ? (metadata[name] ?? "") : "");
  const selected = Object.fromEntries(metadataKeys.map((name) => [name, value(name)]));
  return { keyId, actorId, scopes, metadata: selected };
}

/**
 * Returns the headers for an identity. Each is present, empty without a value: a gateway copies those that are there, and the header that
 * a client sent itself would pass.
 */
export function identityHeaders({ keyId, actorId, scopes, metadata }: GatewayIdentity): readonly HeaderField[] {
  return [
    [`${IDENTITY_PREFIX}key-id`, keyId],
    [`${IDENTITY_PREFIX}actor-id`, encode(actorId)],
    [`${IDENTITY_PREFIX}scopes`, scopes.map(encode).join(" ")],
    ...Object.entries(metadata).map(([name, value]) => [metadataHeader(name), encode(value)] as const),
  ];
}

/** `%`, and whatever is not visible ASCII. */
const ENCODED = /[^!-$&-~]+/g;

/** Percent-encodes the UTF-8 of everything that could end a header field, or that not every gateway passes (RFC 9110 §5.5). */
function encode(text: string): string {
  return text.toWellFormed().replace(ENCODED, encodeURIComponent);
}
