import { create, type DescMessage, type DescMethodUnary, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { ImportedApiKeysService } from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import {
  IssuedApiKeysService,
  UpdateIssuedApiKeyRequestSchema,
} from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { SelfServiceService } from "../../gen/keyhold/v2alpha1/self_service_pb.js";
import { toConnectError } from "../../src/api/errors.ts";
import { parseValid } from "../../src/api/validation.ts";
import { attempt, INVALID_REASONS, MAX_VIOLATIONS } from "../../src/domain/errors.ts";
import { grpcStatus } from "../../src/transport/wire/grpc.ts";
import { table } from "../support/conformance.ts";
import { draft, issued as issue } from "../support/protocols/keys.ts";
import { useProtocols } from "../support/protocols/protocols.ts";
import { compareProtocols, type Scenario, scenario } from "../support/protocols/scenario.ts";
import { type Json, paths } from "../support/rest.ts";

const suite = useProtocols();

const { method: issued } = IssuedApiKeysService;
const { method: imported } = ImportedApiKeysService;
const { method: keys } = ApiKeysService;

type Violation = readonly [field: string, reason: string];

/** An error with all violations of a request, in this order. */
function refused(violations: readonly Violation[]): Json {
  const text = expect.stringMatching(/./);
  return {
    code: "INVALID_ARGUMENT",
    message: text,
    details: {
      "google.rpc.ErrorInfo": { reason: "INVALID_ARGUMENT", domain: "keyhold", metadata: {} },
      "google.rpc.BadRequest": {
        field_violations: violations.map(([field, reason]) => ({ field, reason, description: text })),
      },
    },
    headers: {},
  };
}

function refuses<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  request: MessageInitShape<I>,
  ...violations: Violation[]
): Scenario {
  return scenario(method, method.name, (call) => call(method, request), refused(violations));
}

const LONG = "n".repeat(256);
const KEY_ID = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10";
const SECRET = `kh_v1_${"0".repeat(94)}`;

const SCENARIOS: readonly Scenario[] = [
  refuses(
    issued.createIssuedApiKey,
    { name: "", actorId: "", ttl: "soon", scopes: ["a b"] },
    ["name", "FIELD_REQUIRED"],
    ["actor_id", "FIELD_REQUIRED"],
    ["scopes[0]", "INVALID_FORMAT"],
    ["ttl", "INVALID_FORMAT"],
  ),
  refuses(
    issued.createIssuedApiKey,
    { ...draft(), ttl: "11y", metadata: { k: "v".repeat(4096) } },
    ["metadata", "TOO_LARGE"],
    ["ttl", "OUT_OF_RANGE"],
  ),
  refuses(
    issued.createIssuedApiKey,
    { name: LONG, actorId: "a\0", scopes: Array(101).fill("a"), metadata: { "": "v" }, requestId: "a b" },
    ["name", "STRING_TOO_LONG"],
    ["actor_id", "INVALID_CHARACTER"],
    ["scopes", "TOO_MANY_ITEMS"],
    ['metadata[""]', "STRING_TOO_SHORT"],
    ["request_id", "INVALID_FORMAT"],
  ),
  refuses(
    imported.createImportedApiKey,
    { name: "a", rawKey: SECRET, ttl: "0s" },
    ["actor_id", "FIELD_REQUIRED"],
    ["raw_key", "VALUE_NOT_ALLOWED"],
    ["ttl", "OUT_OF_RANGE"],
  ),
  refuses(
    issued.listIssuedApiKeys,
    { pageSize: -1, pageToken: "a", filter: "owner=a" },
    ["page_size", "OUT_OF_RANGE"],
    ["filter", "INVALID_FORMAT"],
    ["page_token", "VALUE_NOT_ALLOWED"],
  ),
  refuses(
    issued.updateIssuedApiKey,
    { issuedApiKey: { keyId: KEY_ID, scopes: ["a b"] }, updateMask: { paths: ["hint", "name", "owner"] } },
    ["issued_api_key.scopes[0]", "INVALID_FORMAT"],
    ["update_mask", "FIELD_NOT_UPDATABLE"],
    ["update_mask", "UNKNOWN_FIELD"],
  ),
  refuses(
    imported.updateImportedApiKey,
    { importedApiKey: { keyId: KEY_ID, metadata: { k: "v".repeat(4096) } }, updateMask: { paths: ["*"] } },
    ["imported_api_key.name", "FIELD_REQUIRED"],
    ["imported_api_key.metadata", "TOO_LARGE"],
  ),
  refuses(
    issued.rotateIssuedApiKey,
    { keyId: "x", gracePeriod: "31d" },
    ["key_id", "INVALID_FORMAT"],
    ["grace_period", "OUT_OF_RANGE"],
  ),
  refuses(
    keys.deriveToken,
    { algorithm: 9 as number, ttl: "soon", customClaims: { iss: "a", sub: "b", more: "c".repeat(4096) } },
    ["credential", "FIELD_REQUIRED"],
    ["algorithm", "UNKNOWN_ENUM_VALUE"],
    ["ttl", "INVALID_FORMAT"],
    ["custom_claims.iss", "VALUE_NOT_ALLOWED"],
    ["custom_claims.sub", "VALUE_NOT_ALLOWED"],
    ["custom_claims", "TOO_LARGE"],
  ),
  refuses(
    keys.revokeApiKey,
    { keyId: "x", revocationDescription: "d".repeat(1001) },
    ["revocation_description", "STRING_TOO_LONG"],
    ["key_id", "INVALID_FORMAT"],
  ),
  refuses(
    SelfServiceService.method.selfRevokeApiKey,
    { reason: 4 },
    ["credential", "FIELD_REQUIRED"],
    ["reason", "VALUE_NOT_ALLOWED"],
  ),
  refuses(imported.batchCreateImportedApiKeys, {}, ["requests", "TOO_FEW_ITEMS"]),
];

test.each(table(SCENARIOS))("$title reports every violation with its reason, the same over every protocol", (one) =>
  compareProtocols(suite.protocols, one),
);

test("an immutable field has a reason of its own", async () => {
  const { call } = suite.protocols[0] ?? expect.unreachable();
  const { keyId } = await issue(call);
  const reply = await call(issued.updateIssuedApiKey, { issuedApiKey: { keyId, name: "a", actorId: "thief" } });
  expect(reply).toMatchObject({ details: refused([["issued_api_key.actor_id", "IMMUTABLE_FIELD"]]).details });
});

test.each([null, ""])("in JSON without a mask, an immutable field that is %j is absent", async (absent) => {
  const { call } = suite.protocols[0] ?? expect.unreachable();
  const { keyId, actorId } = await issue(call);
  const answer = await suite.rest("PATCH", `${paths.issued}/${keyId}`, { name: "renamed", actor_id: absent });
  expect(answer).toMatchObject({ status: 200, body: { name: "renamed", actor_id: actorId } });
});

/** Values of an int32 field, and why they are none. */
const NUMBERS: readonly (readonly [value: Json, reason: string])[] = [
  [2 ** 31, "OUT_OF_RANGE"],
  [-(2 ** 31) - 1, "OUT_OF_RANGE"],
  [1e30, "OUT_OF_RANGE"],
  ["1e30", "OUT_OF_RANGE"],
  ["9".repeat(400), "OUT_OF_RANGE"],
  [1.5, "WRONG_TYPE"],
  ["x", "WRONG_TYPE"],
  [true, "WRONG_TYPE"],
];

test.each(table(NUMBERS))("the number %j is refused as %s", async (value, reason) => {
  const answer = await suite.rest("POST", "/keyhold.v2alpha1.IssuedApiKeysService/ListIssuedApiKeys", {
    page_size: value,
  });
  const violations = answer.body.details.find(({ type }: Json) => type === "google.rpc.BadRequest")?.debug;
  expect(violations).toMatchObject({ field_violations: [{ field: "page_size", reason }] });
});

/** Bodies that are no message of the RPC, and what is reported together. */
const BODIES: readonly (readonly [body: Json, violations: readonly Violation[]])[] = [
  [
    { nmae: "a", name: 5, owner: "b", ttl: "soon" },
    [
      ["nmae", "UNKNOWN_FIELD"],
      ["name", "WRONG_TYPE"],
      ["owner", "UNKNOWN_FIELD"],
    ],
  ],
  [
    { name: 5, scopes: ["a", 1, null], metadata: { k: 1, l: "m", n: {} }, ttl: ["soon"] },
    [
      ["name", "WRONG_TYPE"],
      ["scopes[1]", "WRONG_TYPE"],
      ["scopes[2]", "WRONG_TYPE"],
      ["metadata.k", "WRONG_TYPE"],
      ["metadata.n", "WRONG_TYPE"],
      ["ttl", "WRONG_TYPE"],
    ],
  ],
  [
    { actor_id: "a", actorId: "b", name: 1 },
    [
      ["actor_id", "DUPLICATE_FIELD"],
      ["name", "WRONG_TYPE"],
    ],
  ],
  [{ scopes: Array(1000).fill(1) }, Array.from({ length: MAX_VIOLATIONS }, (_, i) => [`scopes[${i}]`, "WRONG_TYPE"])],
];

test.each(table(BODIES))("the body %j is refused with every violation", async (body, violations) => {
  const answers = await Promise.all([
    suite.rest("POST", paths.issued, body),
    suite.rest("POST", "/keyhold.v2alpha1.IssuedApiKeysService/CreateIssuedApiKey", body),
  ]);
  const [rest, connect] = answers.map((answer) => answer.body);
  const found: Json[] = rest.error.details[1].field_violations;
  expect(found.map(({ field, reason }) => [field, reason])).toEqual(violations);
  expect(connect.message).toBe(rest.error.message);
});

test("an item of a batch reports every violation in its message", async () => {
  const { call } = suite.protocols[0] ?? expect.unreachable();
  const requests = [
    { ...draft(), rawKey: "a-raw-key-of-this-test" },
    { actorId: "a", ttl: "soon", rawKey: SECRET },
  ];
  expect(await call(imported.batchCreateImportedApiKeys, { requests })).toMatchObject({
    message: { results: [{}, { errorMessage: expect.stringMatching(/^name: .*; raw_key: .*; ttl: [^;]*$/) }] },
  });
});

test("reasons have the form of AIP-193", () => {
  for (const reason of INVALID_REASONS) expect(reason).toMatch(/^(?=.{3,63}$)[A-Z][A-Z0-9_]+[A-Z0-9]$/);
});

/** The default of grpc-java, `GrpcUtil.DEFAULT_MAX_HEADER_LIST_SIZE`. */
const HEADER_LIST_LIMIT = 8192;

test("the trailers of the largest error are accepted by every gRPC client", () => {
  const name = (index: number) => `\u0001${index}\0${"\u0001".repeat(8)}`;
  const metadata = Object.fromEntries(Array.from({ length: 64 }, (_, index) => [name(index), ""]));
  const scopes = Array(100).fill(" ".repeat(256));
  for (const fields of [{ scopes }, { metadata }, { scopes, metadata }]) {
    const issuedApiKey = { name: LONG, ...fields };
    const request = create(UpdateIssuedApiKeyRequestSchema, { issuedApiKey });
    const error = toConnectError(attempt(() => parseValid(UpdateIssuedApiKeyRequestSchema, request, () => {})));
    const trailers = [...grpcStatus(error)];
    expect(trailers.map(([name]) => name)).toContain("grpc-status-details-bin");
    const size = trailers.reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0);
    expect(size).toBeLessThan(HEADER_LIST_LIMIT);
  }
});
