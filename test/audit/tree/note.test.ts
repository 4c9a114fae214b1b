import { generateKeyPairSync } from "node:crypto";
import { expect, test } from "vitest";
import {
  checkpointText,
  isSigned,
  parseCheckpoint,
  parseVerifierKey,
  signNote,
  textOf,
  verifierKey,
} from "../../../src/audit/tree/note.ts";

/** From the documentation of golang.org/x/mod/sumdb/note. */
const PETER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const NOTE = `If you think cryptography is the answer to your problem,
then you don't know what your problem is.

— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=
`;

const known = (text: string) => {
  const verifier = parseVerifierKey(text);
  if (verifier === null) throw new Error("no verifier key");
  return verifier;
};

test("a note of another implementation is verified", () => {
  const verifier = known(PETER);
  expect(isSigned(NOTE, verifier)).toBe(true);
  expect(verifierKey(verifier.name, verifier.publicKey)).toBe(PETER);
  expect(textOf(NOTE)).toMatch(/^If .*\n.* is\.\n$/);
});

test.each([
  ["another text", NOTE.replace("answer", "question")],
  ["another name", NOTE.replace("— Peter", "— peter")],
  ["another key id", NOTE.replace("x08go", "y08go")],
  ["another signature", NOTE.replace("nAM=", "nAQ=")],
  ["no signature", NOTE.replace(/—.*\n/, "")],
  ["a text of its own", NOTE.replace("\n\n—", "\n\nmore\n\n—")],
])("a note with %s is not", (_, note) => {
  expect(isSigned(note, known(PETER))).toBe(false);
});

test("a signature by an unknown key is ignored", () => {
  const other = "— somebody x08goAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";
  expect(isSigned(NOTE.replace("— Peter", `${other}— Peter`), known(PETER))).toBe(true);
});

test.each([
  ...["", "PeterNeumann", PETER.slice(0, -4), PETER.replace("c74f20a3", "c74f20a4"), PETER.replace("+AR", "+BR")],
  PETER.replace("Peter", "peter"),
])("%j is no verifier key", (text) => {
  expect(parseVerifierKey(text)).toBeNull();
});

test("a signed checkpoint is read as it was made", () => {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const verifier = known(verifierKey("keyhold/test", publicKey));
  const head = { origin: "keyhold/test", size: 20852163, root: Buffer.alloc(32, 7) };
  const note = signNote(checkpointText(head), verifier, privateKey);
  expect(isSigned(note, verifier)).toBe(true);
  expect(parseCheckpoint(note)).toEqual(head);
});

test.each([
  "keyhold/test\n01\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n— a b\n",
  "keyhold/test\n1\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n",
  "keyhold/test\n1\nCsUY\n\n— a b\n",
  "",
])("%j is no checkpoint", (note) => {
  expect(parseCheckpoint(note)).toBeNull();
});
