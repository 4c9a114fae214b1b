import { generateKeyPairSync } from "node:crypto";
import { clone, create, fromJson, type JsonValue } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  checkConsistency,
  checkContent,
  checkInclusion,
  checkSignature,
  headOf,
} from "../../console/parts/audit/audit-proof.ts";
import { type AuditEvent, AuditEventSchema } from "../../gen/keyhold/v2alpha1/audit_pb.js";
import { auditEventJson } from "../../src/api/v2alpha1/audit.ts";
import { digestOf, entryOf } from "../../src/audit/tree/entry.ts";
import { leafHash, TreeEdge } from "../../src/audit/tree/merkle.ts";
import { checkpointText, signNote, verifierKey } from "../../src/audit/tree/note.ts";
import { Prover } from "../../src/audit/tree/proof.ts";

const ORIGIN = "keyhold/0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10";

/** The server's own tree, over entries that are their numbers. */
const MAX_SIZE = 20;
const tiles = new Map<string, Buffer>();
const edge = new TreeEdge(0, [], ({ level, index }, hash) => {
  const tile = `${level}/${index}`;
  tiles.set(tile, Buffer.concat([tiles.get(tile) ?? Buffer.of(), hash]));
});
const heads = [head()];
for (let seq = 0; seq < MAX_SIZE; seq++) {
  edge.append(leafHash(Buffer.from(String(seq))));
  heads.push(head());
}
const prover = new Prover({ tile: async ({ level, index }) => tiles.get(`${level}/${index}`) ?? Buffer.of() });

function head() {
  const found = headOf(`${checkpointText({ origin: ORIGIN, size: edge.size, root: edge.root() })}\n— x y\n`);
  if (found === null) throw new Error("a checkpoint has a head");
  return found;
}

const encode = (hashes: readonly Uint8Array[]) => hashes.map((hash) => Buffer.from(hash).toString("base64"));

/** Every single change of a list of hashes: one is flipped, missing, repeated, exchanged with the next, or no hash. */
function* corruptionsOf(hashes: readonly string[]): Generator<string[]> {
  yield [...hashes, Buffer.alloc(32).toString("base64")];
  for (const [place, hash] of hashes.entries()) {
    const flipped = Buffer.from(hash, "base64");
    flipped.writeUInt8(flipped.readUInt8(31) ^ 1, 31);
    yield hashes.with(place, flipped.toString("base64"));
    yield hashes.with(place, hash.slice(4));
    yield hashes.toSpliced(place, 1);
    yield hashes.toSpliced(place, 0, hash);
    const next = hashes[place + 1];
    if (next !== undefined) yield hashes.toSpliced(place, 2, next, hash);
  }
}

test("the proof that a tree has an entry holds for this entry, at this place, in this tree alone", async () => {
  for (const [size, head] of heads.entries())
    for (let seq = 0; seq < size; seq++) {
      const proof = { entry: String(seq), hashes: encode(await prover.inclusion(seq, size)) };
      expect(await checkInclusion(seq, proof, head)).toBe("verified");
      expect(await checkInclusion(seq, { ...proof, entry: String(seq + 1) }, head)).toBe("failed");
      expect(await checkInclusion(size, proof, head)).toBe("failed");
      if (size > 1) expect(await checkInclusion((seq + 1) % size, proof, head)).toBe("failed");
      for (const other of heads)
        if (other !== head) expect(await checkInclusion(seq, proof, { ...head, root: other.root })).toBe("failed");
      for (const hashes of corruptionsOf(proof.hashes))
        expect(await checkInclusion(seq, { ...proof, hashes }, head)).toBe("failed");
    }
});

test("the proof that a tree begins with another holds for these two alone", async () => {
  for (const [size, head] of heads.entries())
    for (const [first, earlier] of heads.slice(0, size + 1).entries()) {
      const hashes = encode(await prover.consistency(first, size));
      expect(await checkConsistency(earlier, head, { hashes })).toBe("verified");
      const [rewritten, other] = [
        { ...earlier, root: heads[first === 1 ? 2 : 1]?.root ?? head.root },
        heads[first + 1],
      ];
      expect(await checkConsistency(rewritten, head, { hashes })).toBe("failed");
      if (first > 0) {
        const root = heads[size === 1 ? 2 : 1]?.root ?? head.root;
        expect(await checkConsistency(earlier, { ...head, root }, { hashes })).toBe("failed");
      }
      if (other !== undefined && other !== head && first !== size)
        expect(await checkConsistency(other, head, { hashes })).toBe("failed");
      if (first < size) expect(await checkConsistency(head, earlier, { hashes })).toBe("failed");
      for (const corrupted of corruptionsOf(hashes))
        expect(await checkConsistency(earlier, head, { hashes: corrupted })).toBe("failed");
    }
});

function signed() {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const key = verifierKey(ORIGIN, publicKey);
  const id = Buffer.from(key.split("+")[1] ?? "", "hex");
  const text = checkpointText({ origin: ORIGIN, size: 3, root: leafHash(Buffer.of()) });
  return { checkpoint: signNote(text, { name: ORIGIN, id, publicKey }, privateKey), verifierKey: key };
}

test("a checkpoint is signed with its key alone", async () => {
  const { checkpoint, verifierKey } = signed();
  expect(headOf(checkpoint)).toEqual({ origin: ORIGIN, size: 3, root: new Uint8Array(leafHash(Buffer.of())) });
  expect(await checkSignature({ checkpoint, verifierKey })).toBe("verified");
  const cosigned = checkpoint.replace("\n\n", "\n\n— witness AAAAAAAA\n");
  expect(await checkSignature({ checkpoint: cosigned, verifierKey })).toBe("verified");
  for (const changed of [
    checkpoint.replace("\n3\n", "\n4\n"),
    checkpoint.replace("\n3\n", "\n03\n"),
    checkpoint.replaceAll(ORIGIN, "keyhold/other"),
    checkpoint.replace(ORIGIN, "keyhold/other"),
    checkpoint.replace(/(?<=— \S+ )\S/, (letter) => (letter === "A" ? "B" : "A")),
    checkpoint.replace(/..(?==*\n$)/, (end) => (end === "AA" ? "BA" : "AA")),
    checkpoint.replace(/—.*\n/, ""),
    "",
  ])
    expect(await checkSignature({ checkpoint: changed, verifierKey }), changed).toBe("failed");
  const other = signed().verifierKey;
  const wrongId = verifierKey.replace(/\+[0-9a-f]{8}\+/, "+00000000+");
  for (const key of [other, wrongId, verifierKey.slice(0, -4), ""])
    expect(await checkSignature({ checkpoint, verifierKey: key }), key).toBe("failed");
});

const EVENT = fromJson(AuditEventSchema, {
  ...{ seq: "4711", time: "2026-11-22T09:40:00.120Z", action: "key.revoked" },
  ...{ keyId: "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10", actorId: "reporting", reason: "é\u{1f511}\u2028" },
  ...{ caller: { name: "admin-token:1", method: "admin-token" }, rpc: "R", clientIp: "203.0.113.9", node: "n:1" },
  changes: [
    { field: "metadata", before: { b: [1, 0.5, 1e21, null], "\u{1f511}": {}, "\uffff": false, a: -0 }, after: {} },
  ],
  salt: "7b1f0a52-3c1e-4d55-9a57-0f3f0c6f6a10",
});

/** The entry of an event as the server makes it. */
function entryOfEvent(event: AuditEvent): string {
  const json = auditEventJson(event);
  return String(entryOf(Number(event.seq), json, digestOf(json) ?? Buffer.alloc(32)));
}

test("an entry is that of the event as it is shown", async () => {
  const entry = entryOfEvent(EVENT);
  expect(await checkContent(EVENT, { entry })).toBe("verified");
  const changes: readonly ((event: AuditEvent) => unknown)[] = [
    (event) => event.seq++,
    (event) => Object.assign(event, { action: "key.updated" }),
    (event) => Object.assign(event, { keyId: "" }),
    (event) => Object.assign(event, { actorId: "other" }),
    (event) => Object.assign(event, { reason: "" }),
    (event) => Object.assign(event, { clientIp: "203.0.113.10" }),
    (event) => Object.assign(event, { salt: "7b1f0a52-3c1e-4d55-9a57-0f3f0c6f6a11" }),
    (event) => Object.assign(event, { salt: "" }),
    (event) => Object.assign(event, { caller: undefined }),
    (event) => Object.assign(event, { time: { ...event.time, nanos: 121_000_000 } }),
    (event) => event.changes.pop(),
  ];
  for (const change of changes) {
    const changed = clone(AuditEventSchema, EVENT);
    change(changed);
    expect(await checkContent(changed, { entry }), String(change)).toBe("failed");
  }
  for (const other of [entry.replace("4711", "4712"), `${entry} `, entry.replace("digest", "Digest"), "{}", ""])
    expect(await checkContent(EVENT, { entry: other }), other).toBe("failed");
});

test("of an erased event only the rest of its entry is checked", async () => {
  const { seq, action, keyId } = EVENT;
  const erased = create(AuditEventSchema, { seq, action, keyId, ...(EVENT.time && { time: EVENT.time }) });
  const entry = entryOfEvent(EVENT);
  expect(await checkContent(erased, { entry })).toBe("unknown");
  expect(await checkContent({ ...erased, action: "key.updated" }, { entry })).toBe("failed");
  expect(await checkContent({ ...erased, reason: "x" }, { entry })).toBe("failed");
});

test("the canonical JSON of any value is that of the server", async () => {
  const value = fc.jsonValue({ stringUnit: "binary" }).map((found) => JSON.parse(JSON.stringify(found)) as JsonValue);
  await fc.assert(
    fc.asyncProperty(value, async (before) => {
      const changes = [{ field: "metadata", before }];
      const event = fromJson(AuditEventSchema, {
        ...{ time: "2026-11-22T09:40:00Z", action: "key.updated", salt: "s" },
        changes,
      });
      expect(await checkContent(event, { entry: entryOfEvent(event) })).toBe("verified");
    }),
  );
});
