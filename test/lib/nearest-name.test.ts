import { expect, test } from "vitest";
import { nearestName } from "../../src/lib/nearest-name.ts";
import { table } from "../support/conformance.ts";

const FIELDS = ["name", "ttl", "actor_id", "create_time", "created_by", "expire_time", "last_used_time", "scopes"];

const NEAREST: readonly (readonly [name: string, nearest: string | null])[] = [
  ["nmae", "name"],
  ["scope", "scopes"],
  ["actorID", "actor_id"],
  ["tll", "ttl"],
  ["ttls", "ttl"],
  ["expires_at", "expire_time"],
  ["expiresAt", "expire_time"],
  ["expiration_time", "expire_time"],
  ["created_at", "create_time"],
  ["createdBy", "created_by"],
  ["last_used_at", "last_used_time"],
  ["actor", "actor_id"],
  ["owner", null],
  ["a", null],
  ["", null],
  ["x".repeat(100_000), null],
];

test.each(table(NEAREST))("of the fields of a key, the one nearest to %j is %s", (name, nearest) => {
  expect(nearestName(name, FIELDS)).toBe(nearest);
});
