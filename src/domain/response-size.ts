import { invalidArgument } from "./errors.ts";
import type { VerifiableKey } from "./key.ts";

/** gRPC clients reject larger messages, unless they are configured otherwise. */
const GRPC_LIMIT = 4 * 2 ** 20;

/** The size of a response in Protobuf, without what it has beside its items, such as a page token. */
export const MAX_ITEMS_BYTES = GRPC_LIMIT - 1024;

/** The fields of a key or verdict whose sizes are fixed or small: ids, times, enums, the hint; tags and lengths of the others. */
const FIXED_BYTES = 256;

/** Tags and lengths of a scope, and of an entry of metadata. */
const [SCOPE_BYTES, ENTRY_BYTES] = [3, 10];

/** A limit of a key, or its state in a verdict, without its name, which is ASCII. */
const LIMIT_BYTES = 66;

/** A previous secret without its hint: its times, tags and lengths. */
const PREVIOUS_SECRET_BYTES = 52;

interface Named {
  readonly name: string;
}

/** The fields of a key or verdict whose sizes vary. */
type Sized = Pick<VerifiableKey, "actorId" | "scopes" | "metadata"> & {
  readonly name?: string;
  readonly lastUsedAddress?: string | null;
  readonly previousSecrets?: readonly { readonly hint: string | null }[];
  readonly revocationDescription?: string | null;
  readonly disableReason?: string | null;
  readonly createdBy?: string | null;
  readonly revokedBy?: string | null;
  readonly disabledBy?: string | null;
  readonly allowedCidrs?: readonly string[] | null;
  readonly restrictedToActorIds?: readonly string[] | null;
  readonly rateLimits?: readonly Named[] | null;
  readonly quotas?: readonly Named[] | null;
  /** The states of limits in a verdict. */
  readonly limits?: readonly Named[] | null;
  /** Present in the results of imports. */
  readonly warnings?: readonly string[];
};

/** Returns an upper bound of the bytes of a key or verdict in a response. */
export function responseSize(sized: Sized): number {
  const { scopes, metadata, allowedCidrs, restrictedToActorIds, warnings, ...texts } = sized;
  let bytes = FIXED_BYTES;
  const { revocationDescription, disableReason, createdBy, revokedBy, disabledBy } = texts;
  for (const text of [
    texts.actorId,
    texts.name,
    texts.lastUsedAddress,
    revocationDescription,
    disableReason,
    createdBy,
    revokedBy,
    disabledBy,
  ]) {
    bytes += Buffer.byteLength(text ?? "");
  }
  // Scopes and CIDR blocks are ASCII.
  for (const scope of scopes) bytes += SCOPE_BYTES + scope.length;
  for (const cidr of allowedCidrs ?? []) bytes += SCOPE_BYTES + cidr.length;
  const { rateLimits, quotas, limits } = sized;
  for (const limit of [...(rateLimits ?? []), ...(quotas ?? []), ...(limits ?? [])])
    bytes += LIMIT_BYTES + limit.name.length;
  for (const { hint } of texts.previousSecrets ?? []) bytes += PREVIOUS_SECRET_BYTES + Buffer.byteLength(hint ?? "");
  for (const warning of warnings ?? []) bytes += SCOPE_BYTES + Buffer.byteLength(warning);
  for (const actorId of restrictedToActorIds ?? []) bytes += SCOPE_BYTES + Buffer.byteLength(actorId);
  for (const key in metadata) bytes += ENTRY_BYTES + Buffer.byteLength(key) + Buffer.byteLength(metadata[key] ?? "");
  return bytes;
}

/** Returns the same for an error of an item. */
export function errorSize(message: string): number {
  return FIXED_BYTES + Buffer.byteLength(message);
}

/** Returns how many of the first items fit into a response, or into this number of bytes. */
export function countFitting<T>(items: readonly T[], sizeOf: (item: T) => number, limit = MAX_ITEMS_BYTES): number {
  let [count, bytes] = [0, 0];
  for (const item of items) {
    bytes += sizeOf(item);
    if (bytes > limit) break;
    count++;
  }
  return count;
}

/** Throws `INVALID_ARGUMENT` on the `requests` of a batch unless the results of all items fit into a response. */
export function requireFit<T>(items: readonly T[], sizeOf: (item: T) => number): void {
  const count = countFitting(items, sizeOf);
  if (count === items.length) return;
  const remedy = `only the first ${count} items fit into one call; send the rest in another call`;
  const description = `the response could exceed ${GRPC_LIMIT} bytes, the gRPC client limit: ${remedy}`;
  throw invalidArgument("requests", description, "TOO_LARGE");
}
