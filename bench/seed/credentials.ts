import { digestCurrent } from "../../src/credential/digest.ts";
import { parseSecretPrefix } from "../../src/credential/format.ts";
import { issuedSecretHint, rawKeyHint } from "../../src/credential/hint.ts";
import { issueSecret } from "../../src/credential/issued-secret.ts";
import type { KeyKind } from "../../src/domain/key.ts";
import { deriveKeyRing } from "../../src/domain/server-keys.ts";
import { systemRandom } from "../../src/lib/random.ts";

/** A valid credential of the seeded database: its key is neither revoked nor expired. */
export interface SeededCredential {
  readonly credential: string;
  readonly keyId: string;
  readonly kind: KeyKind;
}

/** A credential with the values that the database stores. */
export interface MadeCredential extends SeededCredential {
  /** Hexadecimal. */
  readonly digest: string;
  readonly digestKeyId: string;
  readonly hint: string;
}

export type MakeCredential = (keyId: string, kind: KeyKind) => MadeCredential;

/** Returns a function that makes credentials of a service with this root secret and the default prefix. */
export function credentialMaker(root: Uint8Array): MakeCredential {
  const roots = { current: root, retired: [] };
  const [tagKeys, digestKeys] = [deriveKeyRing(roots, "secret-tag"), deriveKeyRing(roots, "secret-digest")];
  const prefix = parseSecretPrefix("kh");
  const newText = (keyId: string, kind: KeyKind) =>
    kind === "issued" ? issueSecret({ prefix, keyId, random: systemRandom, tagKeys }) : newRawKey();
  return (keyId, kind) => {
    const credential = newText(keyId, kind);
    const hint = kind === "issued" ? issuedSecretHint(prefix, credential) : rawKeyHint(credential);
    const { digest, keyId: digestKeyId } = digestCurrent(credential, digestKeys);
    return { credential, keyId, kind, digest: Buffer.from(digest).toString("hex"), digestKeyId, hint };
  };
}

/** A raw key in the style of another service. */
function newRawKey(): string {
  return `sk_live_${Buffer.from(systemRandom.bytes(24)).toString("base64url")}`;
}
