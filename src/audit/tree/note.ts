import { createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { sha256 } from "./merkle.ts";

/** The signature type Ed25519 (C2SP signed-note). */
const ED25519 = 1;

const ID_SIZE = 4;

/** Whoever can check the signatures of a log: its name and public key (C2SP signed-note). */
export interface Verifier {
  readonly name: string;
  readonly id: Buffer;
  readonly publicKey: KeyObject;
}

/** Returns the verifier key of a public key of Ed25519: its name, id and bytes, in the form of Go's `sumdb/note`. */
export function verifierKey(name: string, publicKey: KeyObject): string {
  const key = Buffer.concat([
    Uint8Array.of(ED25519),
    Buffer.from(publicKey.export({ format: "jwk" }).x ?? "", "base64url"),
  ]);
  return `${name}+${idOf(name, key).toString("hex")}+${key.toString("base64")}`;
}

/** Returns null if the text is no verifier key. */
export function parseVerifierKey(text: string): Verifier | null {
  const [, name, hex, base64] = /^([^\s+]+)\+([0-9a-f]{8})\+([0-9A-Za-z+/]+=*)$/.exec(text) ?? [];
  if (name === undefined || hex === undefined || base64 === undefined) return null;
  const [id, key] = [Buffer.from(hex, "hex"), Buffer.from(base64, "base64")];
  if (key[0] !== ED25519 || key.length !== 33 || !idOf(name, key).equals(id)) return null;
  const x = key.subarray(1).toString("base64url");
  return { name, id, publicKey: createPublicKey({ format: "jwk", key: { kty: "OKP", crv: "Ed25519", x } }) };
}

function idOf(name: string, key: Uint8Array): Buffer {
  return sha256(Buffer.concat([Buffer.from(`${name}\n`), key])).subarray(0, ID_SIZE);
}

/** Signs a text, which must end with a line feed. */
export function signNote(text: string, { name, id }: Verifier, privateKey: KeyObject): string {
  const signature = Buffer.concat([id, sign(null, Buffer.from(text), privateKey)]);
  return `${text}\n— ${name} ${signature.toString("base64")}\n`;
}

/** Returns the text of a note without its signatures; null if it is no note. */
export function textOf(note: string): string | null {
  const end = note.lastIndexOf("\n\n");
  return end === -1 ? null : note.slice(0, end + 1);
}

/** Returns whether the key has signed a note: its signatures by other keys do not count. */
export function isSigned(note: string, { name, id, publicKey }: Verifier): boolean {
  const text = textOf(note) ?? "";
  return note
    .slice(text.length + 1)
    .split("\n")
    .some((line) => {
      const [, signer, base64 = ""] = /^— (\S+) (\S+)$/.exec(line) ?? [];
      const signature = Buffer.from(base64, "base64");
      return (
        signer === name &&
        signature.subarray(0, ID_SIZE).equals(id) &&
        verify(null, Buffer.from(text), publicKey, signature.subarray(ID_SIZE))
      );
    });
}

/** The head of a tree (C2SP tlog-checkpoint). */
export interface Checkpoint {
  /** The name of the log. */
  readonly origin: string;
  readonly size: number;
  readonly root: Uint8Array;
}

export function checkpointText({ origin, size, root }: Checkpoint): string {
  return `${origin}\n${size}\n${Buffer.from(root).toString("base64")}\n`;
}

/** Returns the head of a tree in a note, whose signatures are not checked; null if there is none. */
export function parseCheckpoint(note: string): Checkpoint | null {
  const [, origin, size, root] = /^(.+)\n(0|[1-9]\d{0,14})\n([0-9A-Za-z+/]{43}=)\n/.exec(textOf(note) ?? "") ?? [];
  if (origin === undefined || root === undefined) return null;
  return { origin, size: Number(size), root: Buffer.from(root, "base64") };
}
