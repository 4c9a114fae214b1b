import type { KeyKind, KeySecret, VerifiableKey } from "../../domain/key.ts";
import type { VerifiableRecord } from "../../domain/key-lookup.ts";

import { decodeDigest, encodeDigests, encodeJson, SECRET_DIGEST_SIZE } from "./codec.ts";

/**
 * The cached form of a key without its id: a byte for the kind and whether the key has controls, a byte for the number of secrets, their
 * digests, and the rest as JSON in UTF-8, which begins with the controls if there are any. Times are milliseconds since the epoch.
 */
type Rest = [
  actorId: string,
  scopes: string[],
  metadata: Record<string, string>,
  expireTime: number | null,
  revokeTime: number | null,
  ...secrets: [version: number, expireTime: number | null, schemeId?: number, parameters?: string | null][],
];

/** Most keys have none, and take no space for them. */
type Controls = [disableTime: number | null, allowedCidrs: string[] | null, restrictedToActorIds: string[] | null];

const KINDS: readonly KeyKind[] = ["issued", "imported"];
/** Added to the place of the kind. */
const HAS_CONTROLS = KINDS.length;
const HEAD_SIZE = 2;
const MAX_SECRETS = 100;

/** Encodes a record and returns the length; NaN if it cannot be encoded or does not fit. */
export function encodeRecord({ key, secrets }: VerifiableRecord, into: Buffer): number {
  if (secrets.length > MAX_SECRETS) return Number.NaN;
  const controls = controlsOf(key);
  into[0] = KINDS.indexOf(key.kind) + (controls === null ? 0 : HAS_CONTROLS);
  into[1] = secrets.length;
  const digests = secrets.map(({ digest }) => digest);
  const rest: Rest = [
    key.actorId,
    [...key.scopes],
    { ...key.metadata },
    toMillis(key.expireTime),
    toMillis(key.revokeTime),
    ...secrets.map(({ version, expireTime, hash }): Rest[5] => {
      const expiry = toMillis(expireTime);
      return hash === undefined ? [version, expiry] : [version, expiry, hash.schemeId, hash.parameters];
    }),
  ];
  const value = controls === null ? rest : [controls, ...rest];
  return encodeJson(value, into, encodeDigests(digests, into, HEAD_SIZE));
}

function controlsOf({ disableTime, allowedCidrs, restrictedToActorIds }: VerifiableKey): Controls | null {
  if (disableTime === null && allowedCidrs === null && restrictedToActorIds === null) return null;
  return [toMillis(disableTime), allowedCidrs && [...allowedCidrs], restrictedToActorIds && [...restrictedToActorIds]];
}

export function decodeRecord(keyId: string, bytes: Buffer): VerifiableRecord {
  const count = bytes[1] ?? 0;
  const value: Rest | [Controls, ...Rest] = JSON.parse(bytes.toString("utf8", HEAD_SIZE + count * SECRET_DIGEST_SIZE));
  const [controls, [actorId, scopes, metadata, expireTime, revokeTime, ...secrets]] = hasControls(value, bytes)
    ? [value[0], withoutFirst(value)]
    : [NO_CONTROLS, value];
  const [disableTime, allowedCidrs, restrictedToActorIds] = controls;
  const kind = KINDS[(bytes[0] ?? 0) % HAS_CONTROLS] ?? "issued";
  return {
    key: {
      ...{ keyId, kind, actorId, scopes, metadata, expireTime: toDate(expireTime), revokeTime: toDate(revokeTime) },
      ...{ disableTime: toDate(disableTime), allowedCidrs, restrictedToActorIds },
    },
    secrets: secrets.map(
      ([version, expireTime, schemeId, parameters = null], place): KeySecret => ({
        version,
        digest: decodeDigest(bytes, HEAD_SIZE + place * SECRET_DIGEST_SIZE),
        expireTime: toDate(expireTime),
        ...(schemeId !== undefined && { hash: { schemeId, parameters } }),
      }),
    ),
  };
}

const NO_CONTROLS: Controls = [null, null, null];

function hasControls(_: Rest | [Controls, ...Rest], bytes: Buffer): _ is [Controls, ...Rest] {
  return (bytes[0] ?? 0) >= HAS_CONTROLS;
}

function withoutFirst([, ...rest]: [Controls, ...Rest]): Rest {
  return rest;
}

function toMillis(time: Date | null): number | null {
  return time === null ? null : time.getTime();
}

function toDate(time: number | null): Date | null {
  return time === null ? null : new Date(time);
}
