import type { KeyKind, KeySecret } from "../../domain/key.ts";
import type { VerifiableRecord } from "../reader.ts";
import { decodeDigest, encodeDigests, encodeJson, SECRET_DIGEST_SIZE } from "./codec.ts";

/**
 * The cached form of a key without its id: a byte for the kind, a byte for the number of secrets, their digests, and the rest as JSON in
 * UTF-8. Times are milliseconds since the epoch.
 */
type Rest = [
  actorId: string,
  scopes: string[],
  metadata: Record<string, string>,
  expireTime: number | null,
  revokeTime: number | null,
  ...secrets: [version: number, expireTime: number | null][],
];

const KINDS: readonly KeyKind[] = ["issued", "imported"];
const HEAD_SIZE = 2;
const MAX_SECRETS = 100;

/** Encodes a record and returns the length; NaN if it cannot be encoded or does not fit. */
export function encodeRecord({ key, secrets }: VerifiableRecord, into: Buffer): number {
  if (secrets.length > MAX_SECRETS) return Number.NaN;
  into[0] = KINDS.indexOf(key.kind);
  into[1] = secrets.length;
  const digests = secrets.map(({ digest }) => digest);
  const rest: Rest = [
    key.actorId,
    [...key.scopes],
    { ...key.metadata },
    toMillis(key.expireTime),
    toMillis(key.revokeTime),
    ...secrets.map(({ version, expireTime }): Rest[5] => [version, toMillis(expireTime)]),
  ];
  return encodeJson(rest, into, encodeDigests(digests, into, HEAD_SIZE));
}

export function decodeRecord(keyId: string, bytes: Buffer): VerifiableRecord {
  const count = bytes[1] ?? 0;
  const rest: Rest = JSON.parse(bytes.toString("utf8", HEAD_SIZE + count * SECRET_DIGEST_SIZE));
  const [actorId, scopes, metadata, expireTime, revokeTime, ...secrets] = rest;
  const kind = KINDS[bytes[0] ?? 0] ?? "issued";
  return {
    key: { keyId, kind, actorId, scopes, metadata, expireTime: toDate(expireTime), revokeTime: toDate(revokeTime) },
    secrets: secrets.map(
      ([version, expireTime], place): KeySecret => ({
        version,
        digest: decodeDigest(bytes, HEAD_SIZE + place * SECRET_DIGEST_SIZE),
        expireTime: toDate(expireTime),
      }),
    ),
  };
}

function toMillis(time: Date | null): number | null {
  return time === null ? null : time.getTime();
}

function toDate(time: number | null): Date | null {
  return time === null ? null : new Date(time);
}
