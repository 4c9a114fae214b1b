import { type JsonObject, toJson } from "@bufbuild/protobuf";
import { base64Decode } from "@bufbuild/protobuf/wire";
import {
  type AuditCheckpoint,
  type AuditEvent,
  AuditEventSchema,
  type AuditProof,
} from "../../../gen/keyhold/v2alpha1/audit_pb.js";
import { type Bytes, canonical, hexOf, isEqual, sha256, utf8 } from "./bytes.ts";

/*
 * The mathematics by which a browser verifies the audit log without trusting the server: RFC 6962 §2.1, C2SP tlog-checkpoint and signed-note,
 * and the entries of docs/audit.md.
 */

/** `unknown`: there is nothing to check, or no way to. */
export type Outcome = ProofOutcome | "unknown";

type ProofOutcome = "verified" | "failed";

/** The head of a tree (C2SP tlog-checkpoint). */
export interface Head {
  /** The name of the log. */
  readonly origin: string;
  readonly size: number;
  readonly root: Bytes;
}

/** Returns the head of a tree in a checkpoint, whose signature is not checked; null if there is none. */
export function headOf(checkpoint: string): Head | null {
  const [, origin, size, root] =
    /^(.+)\n(0|[1-9]\d{0,14})\n([0-9A-Za-z+/]{43}=)\n/.exec(textOf(checkpoint) ?? "") ?? [];
  return origin === undefined || root === undefined ? null : { origin, size: Number(size), root: base64Decode(root) };
}

/** Returns whether the key has signed the checkpoint, and is of the log that it names. `unknown`: the browser has no Ed25519. */
export async function checkSignature({
  checkpoint,
  verifierKey,
}: Pick<AuditCheckpoint, "checkpoint" | "verifierKey">): Promise<Outcome> {
  const [, name = "", hex = "", encoded = ""] =
    /^([^\s+]+)\+([0-9a-f]{8})\+([0-9A-Za-z+/]{44})$/.exec(verifierKey) ?? [];
  const key = base64Decode(encoded);
  const id = (await sha256(utf8(`${name}\n`), key)).subarray(0, ID_SIZE);
  if (key[0] !== ED25519 || hexOf(id) !== hex || headOf(checkpoint)?.origin !== name) return "failed";
  const text = textOf(checkpoint) ?? "";
  const signatures = checkpoint
    .slice(text.length + 1)
    .split("\n")
    .map((line) => /^— (\S+) ([0-9A-Za-z+/]+=*)$/.exec(line))
    .flatMap((match) => (match?.[1] === name ? base64Decode(match[2] ?? "") : []))
    .filter((signature) => hexOf(signature.subarray(0, ID_SIZE)) === hex);
  try {
    const publicKey = await crypto.subtle.importKey("raw", key.subarray(1), "Ed25519", false, ["verify"]);
    for (const signature of signatures)
      if (await crypto.subtle.verify("Ed25519", publicKey, signature.subarray(ID_SIZE), utf8(text))) return "verified";
    return "failed";
  } catch (error) {
    if (error instanceof DOMException && error.name === "NotSupportedError") return "unknown";
    throw error;
  }
}

/** The signature type Ed25519 (C2SP signed-note). */
const ED25519 = 1;

const ID_SIZE = 4;

/** Returns the text of a note without its signatures; null if it is no note. */
function textOf(note: string): string | null {
  const end = note.lastIndexOf("\n\n");
  return end === -1 ? null : note.slice(0, end + 1);
}

/** Returns whether the entry of the tree is that of the event. `unknown`: the event was erased, and its entry tells no more than is shown. */
export async function checkContent(event: AuditEvent, { entry }: Pick<AuditProof, "entry">): Promise<Outcome> {
  const { seq: _, salt: __, time = "", action = "", key_id, ...content } = jsonOf(event);
  const isErased = event.salt === "";
  if (isErased && Object.keys(content).length > 0) return "failed";
  const digest = isErased
    ? /"digest":"([0-9a-f]{64})"/.exec(entry)?.[1]
    : hexOf(await sha256(utf8(event.salt), utf8(canonical(content))));
  const expected = {
    seq: Number(event.seq),
    time,
    action,
    digest: digest ?? "",
    ...(key_id !== undefined && { key_id }),
  };
  if (entry !== canonical(expected)) return "failed";
  return isErased ? "unknown" : "verified";
}

/** Returns the form over which the digest is made: ProtoJSON without empty fields. */
function jsonOf(event: AuditEvent): JsonObject {
  const json = toJson(AuditEventSchema, event, { useProtoFieldName: true });
  if (json === null || typeof json !== "object" || Array.isArray(json))
    throw new TypeError("an event is not a JSON object");
  return json;
}

/** Returns whether the tree of the checkpoint has the entry at this place. */
export async function checkInclusion(
  seq: number,
  { entry, hashes }: Pick<AuditProof, "entry" | "hashes">,
  { size, root }: Head,
): Promise<ProofOutcome> {
  const path = decodeHashes(hashes);
  if (path === null || seq >= size) return "failed";
  const computed = await rootOf(await sha256(Uint8Array.of(0), utf8(entry)), seq, size, path);
  return computed !== null && isEqual(computed, root) ? "verified" : "failed";
}

/** Returns whether the tree begins with an earlier one. */
export async function checkConsistency(
  earlier: Head,
  head: Head,
  { hashes }: Pick<AuditProof, "hashes">,
): Promise<ProofOutcome> {
  const path = decodeHashes(hashes);
  if (path === null || earlier.size > head.size) return "failed";
  if (earlier.size === 0) return path.length === 0 && isEqual(earlier.root, await sha256()) ? "verified" : "failed";
  const roots = await rootsOf(earlier.root, earlier.size, head.size, path, true);
  return roots !== null && isEqual(roots[0], earlier.root) && isEqual(roots[1], head.root) ? "verified" : "failed";
}

/** Returns the root of a tree of `size` from the hash of a leaf and its audit path (RFC 6962 §2.1.1); null if the path has another length. */
async function rootOf(leaf: Bytes, place: number, size: number, path: readonly Bytes[]): Promise<Bytes | null> {
  if (size === 1) return path.length === 0 ? leaf : null;
  const [rest, sibling] = [path.slice(0, -1), path.at(-1)];
  const split = splitOf(size);
  const isLeft = place < split;
  const part = isLeft ? await rootOf(leaf, place, split, rest) : await rootOf(leaf, place - split, size - split, rest);
  if (part === null || sibling === undefined) return null;
  return isLeft ? nodeHash(part, sibling) : nodeHash(sibling, part);
}

/**
 * Returns the roots of the trees of `first` and of `size` leaves (RFC 6962 §2.1.2); null if the path has another length. `isKnown`: the first
 * tree begins where this range does, so that the path does not repeat its root.
 */
async function rootsOf(
  known: Bytes,
  first: number,
  size: number,
  path: readonly Bytes[],
  isKnown: boolean,
): Promise<readonly [Bytes, Bytes] | null> {
  if (first === size) {
    const [hash, ...more] = isKnown ? [known, ...path] : path;
    return hash === undefined || more.length > 0 ? null : [hash, hash];
  }
  const [rest, sibling] = [path.slice(0, -1), path.at(-1)];
  if (sibling === undefined) return null;
  const split = splitOf(size);
  if (first <= split) {
    const roots = await rootsOf(known, first, split, rest, isKnown);
    return roots && [roots[0], await nodeHash(roots[1], sibling)];
  }
  const roots = await rootsOf(known, first - split, size - split, rest, false);
  return roots && [await nodeHash(sibling, roots[0]), await nodeHash(sibling, roots[1])];
}

/** Returns the largest power of two below `size` (RFC 6962 §2.1). */
function splitOf(size: number): number {
  return 2 ** Math.floor(Math.log2(size - 1));
}

function nodeHash(left: Bytes, right: Bytes): Promise<Bytes> {
  return sha256(Uint8Array.of(1), left, right);
}

/** Returns null if one is not a hash. */
function decodeHashes(hashes: readonly string[]): Bytes[] | null {
  return hashes.every((hash) => /^[0-9A-Za-z+/]{43}=$/.test(hash)) ? hashes.map((hash) => base64Decode(hash)) : null;
}
