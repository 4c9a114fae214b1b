import { expect, test } from "vitest";
import { parseFilter } from "../../src/keys/filter/parse.ts";
import { type WeekRange, weekRangeOf } from "../../src/postgres/lists/list-by-week.ts";

const [A = "", B = "", C = ""] = ["2030-01-01", "2030-02-01", "2030-03-01"].map((day) => `${day}T00:00:00.000000Z`);
const NEVER = "1970-01-01T00:00:00Z";

const expiry = (from: string | null, to: string | null): WeekRange => ({ index: "expiry", from, to });
const use = (to: string): WeekRange => ({ index: "use", from: null, to });

const RANGES: readonly (readonly [filter: string, range: WeekRange | null])[] = [
  ["", null],
  ["status=KEY_STATUS_ACTIVE", null],
  [`expire_time>="${A}"`, expiry(A, null)],
  [`expire_time<"${A}"`, expiry(null, A)],
  [`expire_time="${A}"`, expiry(A, A)],
  // All bounds hold: the latest beginning and the earliest end.
  [`expire_time>"${A}" expire_time>="${B}" expire_time<"${C}" expire_time<="${B}"`, expiry(B, B)],
  [`(expire_time>"${A}" scopes:read) expire_time<"${B}"`, expiry(A, B)],
  // Required are neither the alternatives of OR nor what NOT excludes.
  [`expire_time>"${A}" OR scopes:read`, null],
  [`NOT expire_time>"${A}"`, null],
  [`create_time>"${A}"`, null],
  [`last_used_time<"${B}" last_used_time<="${A}"`, use(A)],
  [`last_used_time>"${A}"`, null],
  [`NOT last_used_time>="${A}"`, use(A)],
  [`NOT last_used_time<"${A}"`, null],
  ["NOT last_used_time:*", use(NEVER)],
  ["last_used_time:*", null],
  ["NOT expire_time:*", null],
  [`NOT create_time>"${A}"`, null],
  [`last_used_time<"${A}" expire_time<"${B}"`, expiry(null, B)],
  // What few keys have is found by another index.
  [`expire_time<"${A}" actor_id=a`, null],
  [`expire_time<"${A}" name=a`, null],
  [`expire_time<"${A}" name="a*"`, null],
  [`expire_time<"${A}" metadata.k=v`, null],
  [`expire_time<"${A}" metadata.k!=v`, expiry(null, A)],
  [`expire_time<"${A}" key_id="0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10"`, null],
  [`expire_time<"${A}" key_id>"0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10"`, expiry(null, A)],
  [`expire_time<"${A}" actor_id!=a`, expiry(null, A)],
];

test.each(RANGES)("the weeks of %s", (filter, range) => {
  expect(weekRangeOf(parseFilter(filter, "issued", () => 0))).toEqual(range);
});
