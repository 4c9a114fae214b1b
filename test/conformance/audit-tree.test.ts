import { createHash } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import { entriesOf, splitHashes } from "../../src/audit/tree/entry.ts";
import { parseCheckpoint } from "../../src/audit/tree/note.ts";
import { succeeded, useService } from "../support/conformance.ts";

const suite = useService();

const get = (path: string) => fetch(`${suite.server.url}/v2alpha1/audit/${path}`);

let size: number;
let root: Buffer;
beforeAll(async () => {
  await suite.sql`INSERT INTO used_root_secrets (digest_key_id) SELECT gen_random_uuid()::text FROM generate_series(1, 300)`;
  const head = parseCheckpoint(await (await get("checkpoint")).text());
  size = head?.size ?? 0;
  root = Buffer.from(head?.root ?? []);
});

test("the checkpoint may not be cached, and has every change before it", async () => {
  const response = await get("checkpoint");
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("text/plain; charset=utf-8");
  expect(response.headers.get("cache-control")).toBe("no-store");
  expect(size).toBeGreaterThan(300);
  await suite.sql`INSERT INTO used_root_secrets (digest_key_id) VALUES ('one more')`;
  expect(parseCheckpoint(await (await get("checkpoint")).text())?.size).toBe(size + 1);
});

test.each([
  "tile/0/000",
  "tile/0/001.p/1",
  "tile/1/000.p/1",
  "tile/entries/000",
  "tile/entries/001.p/44",
  "tile/0/000.p/7",
])("%s may be cached by the caller for ever", async (path) => {
  const response = await get(path);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("application/octet-stream");
  expect(response.headers.get("cache-control")).toBe("private, max-age=31536000, immutable");
  const bytes = await response.bytes();
  const width = Number(/\.p\/(\d+)$/.exec(path)?.[1] ?? 256);
  expect(path.includes("entries") ? entriesOf(bytes).length : bytes.length / 32).toBe(width);
});

test.each([
  "",
  "tile/0/001",
  "tile/1/000",
  "tile/2/000.p/1",
  "tile/0/x001/000",
  "tile/entries/002.p/1",
  "tile/0/000.p/256",
  "x",
])("%j does not exist", async (path) => {
  const response = await get(path);
  expect(response.status).toBe(404);
  expect(await response.json()).toMatchObject({ error: { details: [{ reason: "PATH_NOT_FOUND" }] } });
});

const sha256 = (...parts: Uint8Array[]) => createHash("sha256").update(Buffer.concat(parts)).digest();

/** Computes the root from an inclusion proof as RFC 9162 §2.1.3.2 says. */
function rootOf(seq: number, treeSize: number, leaf: Buffer, path: readonly Uint8Array[]): Buffer {
  let [fn, sn, hash] = [seq, treeSize - 1, leaf];
  for (const step of path) {
    expect(sn).toBeGreaterThan(0);
    if (fn % 2 === 1 || fn === sn) {
      hash = sha256(Uint8Array.of(1), step, hash);
      while (fn % 2 === 0 && fn > 0) [fn, sn] = [fn >> 1, sn >> 1];
    } else hash = sha256(Uint8Array.of(1), hash, step);
    [fn, sn] = [fn >> 1, sn >> 1];
  }
  expect(sn).toBe(0);
  return hash;
}

const prove = (query: Record<string, string>) =>
  suite.rest("GET", `/v2alpha1/admin/auditProof?${new URLSearchParams(query)}`);

test.each([0, 1, 255, 256, 299])("the proof of event %i leads to the root", async (seq) => {
  const { tree_size, entry, hashes } = succeeded(await prove({ seq: String(seq), tree_size: String(size) }));
  expect(Number(tree_size)).toBe(size);
  expect(JSON.parse(entry).seq).toBe(seq);
  const path = hashes.map((hash: string) => Buffer.from(hash, "base64"));
  expect(rootOf(seq, size, sha256(Uint8Array.of(0), Buffer.from(entry)), path)).toEqual(root);
});

test("the proof that a tree begins with its first tile", async () => {
  const { hashes } = succeeded(await prove({ first_size: "256", tree_size: "257" }));
  const last = splitHashes(await (await get("tile/0/001.p/1")).bytes())[0] ?? Buffer.of();
  expect(hashes).toEqual([Buffer.from(last).toString("base64")]);
});

test.each([
  [{ seq: "5", tree_size: "5" }, "AUDIT_SEQ_OUT_OF_RANGE"],
  [{ first_size: "6", tree_size: "5" }, "AUDIT_SEQ_OUT_OF_RANGE"],
  [{ seq: "5", tree_size: "100000" }, "AUDIT_SEQ_OUT_OF_RANGE"],
  [{ tree_size: "5" }, "FIELD_REQUIRED"],
  [{ seq: "5", first_size: "5" }, "FIELD_REQUIRED"],
])("no proof for %j", async (query, reason) => {
  const answer = await prove(query);
  expect(answer.status).toBe(400);
  expect(JSON.stringify(answer.body)).toContain(reason);
});
