import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { digestAll } from "../../../src/credential/digest.ts";
import { encodeCredential } from "../../../src/verify/cache/cached-credential.ts";
import { identifiedByHash, withKey } from "../../../src/verify/identified.ts";
import { newFixture } from "../fixture.ts";

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), "keyhold-heap-"));
});
afterAll(() => rm(dir, { recursive: true }));

/** Distinctive parts of a credential. The header of a JWT is not one: it names the signing key and is the same in all. */
function isIn(heap: Buffer, credential: string): boolean {
  const own = credential.replace(/^eyJ[\w-]+\./, "");
  return [own.slice(-50, -25), own.slice(-25), own.slice(25, 50)].some((part) => heap.includes(part));
}

test("the heap contains nothing of cached credentials", async () => {
  const file = join(dir, "heap.heapsnapshot");
  const program = join(import.meta.dirname, "cache-credentials.ts");
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [program, file]);
  expect(stderr).toMatch(/^100 \d{3} \d+$/);
  const heap = await readFile(file);
  const [held = "", ...credentials] = stdout.trimEnd().split("\n");
  expect(isIn(heap, held)).toBe(true);
  expect(credentials.length).toBe(99);
  expect(credentials.filter((credential) => isIn(heap, credential))).toEqual([]);
});

test("the memory outside the heap contains nothing of a cached credential", () => {
  const fixture = newFixture();
  const { credential, keyId } = fixture.importRaw("a raw key that another service made");
  const record = fixture.store.records.get(keyId);
  const digests = digestAll(credential, fixture.rings.digest);
  const [secret] = record?.secrets ?? [];
  if (record === undefined || secret === undefined) expect.unreachable();
  const hashed = { ...record, secrets: [{ ...secret, hash: { schemeId: 1, parameters: null } }] };
  const bytes = encodeCredential(withKey(identifiedByHash(digests, secret.digest), hashed), {
    ...{ ofKey: 1, ofName: 2, ofActor: 3, count: 4 },
  });
  if (bytes === undefined) expect.unreachable();
  expect(bytes.includes(record.key.actorId)).toBe(true);
  expect(isIn(bytes, credential)).toBe(false);
});
