import type { ApiKey } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import { type Limits, limitsOf, NO_LIMITS } from "../limits-editor.tsx";

/** The fields of a key that people write, in the form in which they write them. */
export interface KeyValues {
  readonly name: string;
  readonly actorId: string;
  readonly scopes: string[];
  /** A duration such as `90d`. Empty: the default of the server for a new key, unchanged for another one. */
  readonly ttl: string;
  /** One `name=value` in each line. */
  readonly metadata: string;
  readonly allowedCidrs: string[];
  readonly restrictedToActorIds: string[];
  readonly limits: Limits;
}

export const NEW_KEY: KeyValues = {
  ...{ name: "", actorId: "", ttl: "90d", metadata: "" },
  ...{ scopes: [], allowedCidrs: [], restrictedToActorIds: [], limits: NO_LIMITS },
};

export function valuesOf(apiKey: ApiKey): KeyValues {
  const { name, actorId, scopes, metadata, ipRestriction, restrictedToActorIds } = apiKey;
  return {
    limits: limitsOf(apiKey),
    ...{ name, actorId, scopes, restrictedToActorIds, ttl: "" },
    metadata: Object.entries(metadata)
      .map(([entry, value]) => `${entry}=${value}`)
      .join("\n"),
    allowedCidrs: ipRestriction?.allowedCidrs ?? [],
  };
}

/** Returns the fields of a request. */
export function fieldsOf({ ttl, metadata, allowedCidrs, limits, ...values }: KeyValues) {
  return {
    ...values,
    ...limits,
    metadata: parseMetadata(metadata),
    ...(ttl !== "" && { ttl }),
    ...(allowedCidrs.length > 0 && { ipRestriction: { allowedCidrs } }),
  };
}

/** Returns the paths of the fields that differ, for an update mask. */
export function changedPaths(before: KeyValues, after: KeyValues): string[] {
  const isSame = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);
  return [
    ...(isSame(before.name, after.name) ? [] : ["name"]),
    ...(isSame(before.scopes, after.scopes) ? [] : ["scopes"]),
    ...(isSame(parseMetadata(before.metadata), parseMetadata(after.metadata)) ? [] : ["metadata"]),
    ...(after.ttl === "" ? [] : ["ttl"]),
    ...(isSame(before.allowedCidrs, after.allowedCidrs) ? [] : ["ip_restriction"]),
    ...(isSame(before.limits.rateLimits, after.limits.rateLimits) ? [] : ["rate_limits"]),
    ...(before.limits.quotas === after.limits.quotas ? [] : ["quotas"]),
  ];
}

/** Returns the entries of lines; a line without `=` has an empty value. */
export function parseMetadata(text: string): Record<string, string> {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return Object.fromEntries(
    lines.map((line) => {
      const [name = "", ...value] = line.split("=");
      return [name.trim(), value.join("=").trim()];
    }),
  );
}
