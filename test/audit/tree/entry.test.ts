import { create } from "@bufbuild/protobuf";
import canonicalize from "canonicalize";
import fc from "fast-check";
import { expect, test } from "vitest";
import { AuditEventSchema } from "../../../gen/keyhold/v2alpha1/audit_pb.js";
import { auditEvent, auditEventJson, storedEventJson } from "../../../src/api/v2alpha1/audit.ts";
import type { AuditEvent } from "../../../src/audit/event.ts";
import { bundleOf, digestOf, entriesOf, entryOf } from "../../../src/audit/tree/entry.ts";

const EVENT: AuditEvent = {
  ...{ seq: 4711, time: new Date("2026-11-22T09:40:00.120Z"), action: "key.revoked" },
  ...{ keyId: "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10", actorId: "reporting", resourceId: null },
  call: {
    ...{ caller: "admin-token:0198b2a4", method: "admin-token", subject: "0198b2a4", key_id: "0198b2a4" },
    ...{ rpc: "keyhold.v2alpha1.ApiKeysService/RevokeApiKey", peer_ip: "10.0.0.7", client_ip: "203.0.113.9" },
    ...{ user_agent: "curl/8.14.1 \u00e9\u{1f511}", call_id: "c", request_id: "r", node: "keyhold-0:1" },
  },
  before: { update_time: "2026-11-22T09:30:00.123+00:00", revoke_time: null, metadata: { b: [1, 0.5, 1e21], a: null } },
  after: {
    ...{ update_time: "2026-11-22T09:40:00.12+00:00", revoke_time: "2026-11-22T09:40:00.12+00:00", metadata: {} },
    ...{ revocation_description: "found in a public repository", allowed_cidrs: ["203.0.113.0/24"] },
  },
  salt: "7b1f0a52-3c1e-4d55-9a57-0f3f0c6f6a10",
};

/**
 * What the tree has of a stored event may never change, or `keyhold audit verify` fails for every log. A field that is added to the API must be empty
 * in events that are stored already.
 */
test.each([
  [
    "a change of a key",
    EVENT,
    '{"action":"key.revoked","digest":"3628bdcb6bd24421a903fc7a2f8fdd3083a98dc9128cd259860cd0df947fa048","key_id":"0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10","seq":4711,"time":"2026-11-22T09:40:00.120Z"}',
  ],
  [
    "an event with little",
    {
      ...EVENT,
      seq: 0,
      keyId: null,
      actorId: null,
      resourceId: "audit_log",
      before: null,
      after: null,
      call: { caller: "c", method: "local", subject: "" },
    } satisfies AuditEvent,
    '{"action":"key.revoked","digest":"2e7a6dc0d2acbc77cfc19cfe03f628f2e40a41e030608628e4eb72f1b96c0d67","seq":0,"time":"2026-11-22T09:40:00.120Z"}',
  ],
])("the entry of %s", (_, event, expected) => {
  const json = storedEventJson(event);
  expect(String(entryOf(event.seq, json, digestOf(json) ?? Buffer.of()))).toBe(expected);
});

test("a stored event has the JSON that a client makes of its resource", () => {
  const text = fc.string({ unit: "grapheme", maxLength: 8 });
  const time = fc.date({ min: new Date(0), max: new Date("9999-12-31T23:59:59.999Z"), noInvalidDate: true });
  const stored = fc.oneof(fc.constantFrom(null, "", false, 0), text, time.map(postgresTime), fc.jsonValue());
  const row = fc.option(
    fc.dictionary(fc.constantFrom("name", "metadata", "expire_time", "allowed_cidrs", "reason"), stored),
  );
  const event = fc.record({
    ...{
      seq: fc.nat(),
      time,
      action: fc.constant("key.updated"),
      keyId: fc.option(fc.uuid()),
      actorId: fc.option(text),
    },
    resourceId: fc.option(text),
    call: fc.record(
      {
        caller: text,
        method: fc.constant("local" as const),
        subject: text,
        key_id: text,
        issuer: text,
        rpc: text,
        node: text,
      },
      { requiredKeys: ["caller", "method", "subject"] },
    ),
    ...{ before: row, after: row, salt: fc.option(fc.uuid()) },
  });
  fc.assert(
    fc.property(event, (stored) => {
      const resource = create(AuditEventSchema, auditEvent(stored));
      expect(canonicalize(storedEventJson(stored))).toBe(canonicalize(auditEventJson(resource)));
    }),
  );
});

const postgresTime = (time: Date) => time.toISOString().replace("Z", "+00:00");

test("an event without a salt has no digest", () => {
  expect(digestOf(storedEventJson({ ...EVENT, salt: null }))).toBeNull();
});

test("a bundle is read as it was made", () => {
  const entries = [Buffer.from("one"), Buffer.from(""), Buffer.from("three")];
  const bundle = bundleOf(entries);
  expect(bundle.toString("hex")).toBe("00036f6e65000000057468726565");
  expect(entriesOf(bundle)).toEqual(entries);
  for (const length of [1, 3, 4, 6, 8]) expect(() => entriesOf(bundle.subarray(0, length))).toThrow(RangeError);
});
