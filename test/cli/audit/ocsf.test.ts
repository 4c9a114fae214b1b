import { readFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect, test } from "vitest";
import { AuditEventSchema } from "../../../gen/keyhold/v2alpha1/audit_pb.js";
import { apiActivity } from "../../../src/cli/audit/ocsf.ts";
import { importKey, revoke } from "../../support/conformance.ts";
import { issue } from "../../support/rest.ts";
import { useKeysCommand } from "../keys/keys-command.ts";

const { keyhold, rest } = useKeysCommand();

/** The class `api_activity` of OCSF 1.1.0 as JSON Schema, without titles, from ocsf-json-schema 1.2.0 of PyPI (Apache License 2.0). */
const schema = JSON.parse(readFileSync(join(import.meta.dirname, "ocsf-api-activity-1.1.0.json.golden"), "utf8"));
const isValid = new Ajv2020({ allErrors: true, allowUnionTypes: true }).compile(schema);

function violations(activity: unknown) {
  return isValid(activity) ? [] : isValid.errors;
}

test("every event of a server is a valid API Activity", async () => {
  const { keyId } = await issue(rest(), { metadata: { note: "" }, scopes: ["read"] });
  await revoke(rest(), keyId, { revocation_description: "leaked" });
  const { keyId: imported } = await importKey(rest());
  expect((await keyhold(["keys", "delete", imported])).code).toBe(0);
  expect((await keyhold(["keys", "list"], undefined, { KEYHOLD_TOKEN: "wrong" })).code).toBe(4);
  await expect
    .poll(async () => (await keyhold(["audit", "list", "--action", "call.denied"])).stdout)
    .toContain("denied");
  const { code, stdout } = await keyhold(["audit", "export", "--format", "ocsf"]);
  expect(code).toBe(0);
  const activities = stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
  for (const activity of activities) expect([activity, violations(activity)]).toEqual([activity, []]);
  const codes = activities.map(({ metadata }) => metadata.event_code);
  // Changes by the server, by a command on the database, and by calls.
  expect(codes).toEqual(
    expect.arrayContaining([
      "migration.created",
      "key.issued",
      "key.revoked",
      "key.imported",
      "key.deleted",
      "call.denied",
    ]),
  );
});

test("the schema rejects an attribute that the class has not, or lacks", () => {
  const activity = apiActivity(create(AuditEventSchema, { action: "key.issued", caller: { name: "database:owner" } }));
  expect(violations(activity)).toEqual([]);
  const { src_endpoint: _, ...incomplete } = activity;
  expect(violations(incomplete)).not.toEqual([]);
  expect(violations({ ...activity, reason: "leaked" })).not.toEqual([]);
});

const KEY_ID = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10";

test("an event of a call keeps everything that it says", () => {
  const event = create(AuditEventSchema, {
    seq: 4711n,
    time: timestampFromMs(1_893_456_000_123),
    action: "key.revoked",
    keyId: KEY_ID,
    actorId: "team_1",
    caller: { name: "oidc:ana", method: "oidc", subject: "ana", issuer: "https://login.example.com" },
    rpc: "keyhold.v2alpha1.ApiKeysService/RevokeApiKey",
    peerIp: "10.0.0.1",
    clientIp: "203.0.113.7",
    userAgent: "keyhold/1",
    callId: "call-1",
    requestId: "request-1",
    node: "host:4711",
    changes: [{ field: "disable_reason", after: { kind: { case: "stringValue", value: "" } } }],
    reason: "leaked",
  });
  const activity = apiActivity(event);
  expect(violations(activity)).toEqual([]);
  expect(activity).toEqual({
    ...{ category_uid: 6, class_uid: 6003, activity_id: 3, type_uid: 600_303, time: 1_893_456_000_123 },
    ...{ severity_id: 1, severity: "Informational", status_id: 1, status: "Success", status_detail: "leaked" },
    message: "key.revoked",
    metadata: {
      ...{ version: "1.1.0", product: { name: "Keyhold", vendor_name: "Keyhold" }, log_name: "audit" },
      ...{ uid: "4711", sequence: 4711, event_code: "key.revoked", correlation_uid: "call-1" },
    },
    actor: { user: { name: "oidc:ana", uid: "ana" }, idp: { name: "https://login.example.com" } },
    api: {
      operation: "RevokeApiKey",
      service: { name: "keyhold.v2alpha1.ApiKeysService" },
      request: { uid: "call-1" },
    },
    src_endpoint: { ip: "203.0.113.7", intermediate_ips: ["10.0.0.1"] },
    http_request: { user_agent: "keyhold/1" },
    resources: [{ uid: KEY_ID, type: "key", owner: { uid: "team_1" } }],
    unmapped: {
      changes: [{ field: "disable_reason", after: "" }],
      ...{ caller_method: "oidc", request_id: "request-1", node: "host:4711" },
    },
  });
});

test.for([
  ["key.issued", 1],
  ["key.imported", 1],
  ["signing_key.created", 1],
  ["key.updated", 3],
  ["key.deleted", 4],
  ["audit.pruned", 4],
  ["audit.checkpoint", 99],
  ["limit.exceeded", 99],
  ["call.denied", 0],
] as const)("the activity of %s is %i", ([action, activity]) => {
  expect(apiActivity(create(AuditEventSchema, { action }))).toMatchObject({
    activity_id: activity,
    type_uid: 600_300 + activity,
    status: action === "call.denied" ? "Failure" : "Success",
  });
});
