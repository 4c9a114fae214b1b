import { expect, test } from "vitest";
import { deriveKeyRing } from "../../src/domain/server-keys.ts";
import { parseListRequest } from "../../src/keys/read.ts";
import { sealPageToken } from "../../src/paging/page-token.ts";

const ring = deriveKeyRing({ current: Buffer.alloc(32, 1), retired: [] }, "page-token");
const keyId = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10";
const after = { keyId, value: null };
const FIRST = Date.parse("2026-11-22T10:00:00.123Z");
const filter = 'expire_time < now() + "30d" AND create_time > now()';

function read(pageToken: string, now: number, text = filter) {
  const context = { rings: { pageToken: ring }, clock: { now: () => now } };
  return parseListRequest(context, null, { filter: text, orderBy: "", pageToken, pageSize: 10 });
}

test("now() of every page is the time of the first one", () => {
  const first = read("", FIRST);
  const token = sealPageToken(first.scope, { after, now: first.now }, ring);
  const second = read(token, FIRST + 3_600_000);
  expect(second).toEqual({ ...first, after });
  expect(second.filter).toMatchObject({
    operands: [{ value: "2026-12-22T10:00:00.123000Z" }, { value: "2026-11-22T10:00:00.123000Z" }],
  });
});

test("without now() the page token is one of earlier releases", () => {
  const { scope, now } = read("", FIRST, "expire_time:*");
  const token = sealPageToken(scope, { after, now }, ring);
  expect([now, token.length]).toEqual([null, 44]);
  expect(read(token, FIRST, "expire_time:*")).toMatchObject({ after, now: null });
});
