import { KEY_KINDS } from "../../domain/key.ts";
import type { VerifiableRecord } from "../../domain/key-lookup.ts";
import { decodeDigests, encodeDigests, encodeJson, SECRET_DIGEST_SIZE } from "./codec.ts";

/**
 * The cached form of a key without its id: a byte for the number of secrets, their digests, and the rest as JSON in UTF-8. Most keys have no
 * controls, and take no space for them. Times are milliseconds since the epoch.
 */
type Rest = [
  kind: number,
  actorId: string,
  scopes: readonly string[],
  metadata: Readonly<Record<string, string>>,
  expireTime: number | null,
  revokeTime: number | null,
  secrets: [version: number, expireTime: number | null, schemeId?: number, parameters?: string | null][],
  disableTime?: number | null,
  allowedCidrs?: readonly string[] | null,
  restrictedToActorIds?: readonly string[] | null,
];

const HEAD_SIZE = 1;
const MAX_SECRETS = 100;

/** Encodes a record and returns the length; NaN if it cannot be encoded or does not fit. */
export function encodeRecord({ key, secrets }: VerifiableRecord, into: Buffer): number {
  if (secrets.length > MAX_SECRETS) return Number.NaN;
  into[0] = secrets.length;
  const digests = secrets.map(({ digest }) => digest);
  const { disableTime, allowedCidrs, restrictedToActorIds } = key;
  const hasControls = disableTime !== null || allowedCidrs !== null || restrictedToActorIds !== null;
  const rest: Rest = [
    KEY_KINDS.indexOf(key.kind),
    key.actorId,
    key.scopes,
    key.metadata,
    toMillis(key.expireTime),
    toMillis(key.revokeTime),
    secrets.map(({ version, expireTime, hash }) => {
      const expiry = toMillis(expireTime);
      return hash === undefined ? [version, expiry] : [version, expiry, hash.schemeId, hash.parameters];
    }),
  ];
  if (hasControls) rest.push(toMillis(disableTime), allowedCidrs, restrictedToActorIds);
  return encodeJson(rest, into, encodeDigests(digests, into, HEAD_SIZE));
}

export function decodeRecord(keyId: string, bytes: Buffer): VerifiableRecord {
  const end = HEAD_SIZE + (bytes[0] ?? 0) * SECRET_DIGEST_SIZE;
  const digests = decodeDigests(bytes, HEAD_SIZE, end);
  const rest: Rest = JSON.parse(bytes.toString("utf8", end));
  const [kind, actorId, scopes, metadata, expireTime, revokeTime, secrets] = rest;
  const [, , , , , , , disableTime = null, allowedCidrs = null, restrictedToActorIds = null] = rest;
  return {
    key: {
      ...{ keyId, kind: KEY_KINDS[kind] ?? "issued", actorId, scopes, metadata },
      ...{ expireTime: toDate(expireTime), revokeTime: toDate(revokeTime), disableTime: toDate(disableTime) },
      ...{ allowedCidrs, restrictedToActorIds },
    },
    secrets: digests.map((digest, place) => {
      const [version, expireTime, schemeId, parameters = null] = secrets[place] ?? [0, 0];
      const hash = schemeId === undefined ? {} : { hash: { schemeId, parameters } };
      return { version, digest, expireTime: toDate(expireTime), ...hash };
    }),
  };
}

function toMillis(time: Date | null): number | null {
  return time === null ? null : time.getTime();
}

function toDate(time: number | null): Date | null {
  return time === null ? null : new Date(time);
}
