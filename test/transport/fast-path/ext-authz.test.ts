import { fromBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type CheckResponse, CheckResponseSchema } from "../../../gen/envoy/service/auth/v3/ext_authz_pb.js";
import { clientAddressByEnvoy, clientAddressFrom } from "../../../src/lib/client-address.ts";
import { EXT_AUTHZ } from "../../../src/transport/gateways/ext-authz.ts";
import type { GatewayOptions } from "../../../src/transport/server.ts";
import { encodeCheck } from "../../support/envoy-protos.ts";
import { type Described, decisionOf, describeRequest } from "../../support/ext-authz.ts";
import { type Fields, forwardAuth } from "../../support/forward-auth.ts";
import { frame } from "../../support/wire.ts";
import { authorize, guardBy, REJECTED } from "./gateway-verdicts.ts";
import { observeHttp2 } from "./observe.ts";
import { type Subject, startSubject } from "./subjects.ts";

function gateways(decisions: number[]): GatewayOptions {
  const onDecision = (status: number) => void decisions.push(status);
  return {
    extAuthz: {
      authorize,
      guard: guardBy(["authorization"]),
      clientAddressOf: clientAddressByEnvoy(["127.0.0.0/8"]),
      onDecision,
    },
    forwardAuth: {
      authorize,
      guard: guardBy(["x-keyhold-authorization"]),
      clientAddressOf: clientAddressFrom(["127.0.0.0/8"]),
      onDecision,
    },
  };
}

let fast: Subject;
let stock: Subject;
const decisions: { fast: number[]; stock: number[] } = { fast: [], stock: [] };
beforeAll(async () => {
  fast = await startSubject({ gateways: gateways(decisions.fast) });
  stock = await startSubject({ gateways: gateways(decisions.stock), fastPath: false });
});
afterAll(() => Promise.all([fast.close(), stock.close()]));

const bearer = (credential: string): Fields => [["Authorization", `Bearer ${credential}`]];
const described = (more: Described) => encodeCheck(describeRequest(more));

interface Row {
  readonly name: string;
  readonly body: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** For the client; undefined for an error of the RPC. */
  readonly status?: number;
  /** Whether the fast path serves it; true by default. */
  readonly isTaken?: boolean;
}

const VALID = described({ headers: bearer("valid") });
const ROWS: readonly Row[] = [
  { name: "a valid credential", body: VALID, status: 200 },
  { name: "a valid credential in the map", body: described({ headers: bearer("valid"), isRaw: false }), status: 200 },
  {
    name: "a valid credential that is not shared",
    body: described({ headers: [["X-Api-Key", "unshared"]] }),
    status: 200,
  },
  { name: "a verdict that is not cached", body: described({ headers: bearer("later") }), status: 200 },
  {
    name: "spoofed headers",
    body: described({ headers: [...bearer("valid"), ["X_Keyhold-a", "b"], ["X-Keyhold-Key-Id", "c"]] }),
    status: 200,
  },
  { name: "the path", body: described({ path: "/a?x-api-key=valid" }), status: 200 },
  { name: "no credential", body: described({}), status: 401 },
  ...REJECTED.map(([reason, status]) => ({ name: reason, body: described({ headers: bearer(reason) }), status })),
  ...["unavailable", "unavailable-later", "fault"].map((one) => ({
    name: one,
    body: described({ headers: bearer(one) }),
    status: 503,
  })),
  { name: "a limit", body: described({ headers: bearer("limited") }), status: 503 },
  {
    name: "a missing scope",
    body: described({ headers: bearer("valid"), extensions: { required_scopes: "admin" } }),
    status: 403,
  },
  { name: "an unknown setting", body: described({ headers: bearer("valid"), extensions: { a: "b" } }), status: 400 },
  { name: "a credential twice", body: described({ headers: [...bearer("valid"), ...bearer("valid")] }), status: 400 },
  {
    name: "an address",
    body: described({ headers: [...bearer("NOT_FOUND"), ["X-Forwarded-For", "203.0.113.9"]], source: "127.0.0.1" }),
    status: 401,
  },
  { name: "a gateway that is refused", body: VALID, headers: { authorization: "Bearer no" }, status: 503 },
  { name: "a request id", body: VALID, headers: { "x-request-id": "a b" }, status: 200 },
  { name: "no attributes", body: encodeCheck({}), status: 400 },
  { name: "an unknown field", body: Buffer.concat([VALID, Buffer.from([0xf8, 0x07, 1])]), status: 200 },
  { name: "long headers", body: described({ headers: [...bearer("valid"), ["a", "b".repeat(50_000)]] }), status: 200 },
  {
    name: "too many headers",
    body: described({ headers: Array.from({ length: 2 ** 14 }, () => ["a", ""]) }),
    status: 400,
  },
  { name: "a malformed message", body: VALID.subarray(0, -1), status: 400 },
  { name: "no message", body: Buffer.from([0xff]), status: 400 },
  { name: "a message above the limit", body: Buffer.alloc(2 ** 20 + 1), isTaken: false },
  { name: "a deadline that has passed", body: VALID, headers: { "grpc-timeout": "0m" } },
  { name: "a deadline", body: VALID, headers: { "grpc-timeout": "3S" }, status: 200 },
  { name: "a compressed message", body: VALID, headers: { "grpc-encoding": "gzip" }, status: 200, isTaken: false },
  { name: "a web page", body: VALID, headers: { origin: "https://a.example" }, status: 200, isTaken: false },
];

const call = { ":path": `/${EXT_AUTHZ}`, "content-type": "application/grpc", te: "trailers" };

describe("the fast path answers Envoy like Connect:", () => {
  test.for(ROWS.map((row, index) => [row.name, row, index] as const))("%s", async ([, row, index]) => {
    const { body, headers = {}, status, isTaken = true } = row;
    const id = headers["x-request-id"] === undefined ? `check-${index}` : undefined;
    const ask = async (subject: Subject) => {
      const fields = { ...call, ...(id !== undefined && { "x-request-id": id }), ...headers };
      const seen = await observeHttp2(subject.url, fields, [frame(body)]);
      return { seen, log: id === undefined ? [] : await subject.log(id) };
    };
    const before = fast.passedOn();
    const [ours, theirs] = [await ask(fast), await ask(stock)];
    expect(ours).toEqual(theirs);
    if (isTaken) expect(fast.passedOn() - before).toBe(0);
    if (status !== undefined) expect(decisionOf(answerIn(ours.seen.body)).status).toBe(status);
    else expect(ours.seen.trailers?.["grpc-status"] ?? ours.seen.headers["grpc-status"]).toMatch(/^[1-9]/);
    const counted = status === undefined ? [] : [status];
    expect([decisions.fast.splice(0), decisions.stock.splice(0)]).toEqual([counted, counted]);
  });
});

function answerIn(body: string): CheckResponse {
  return fromBinary(CheckResponseSchema, Buffer.from(body, "latin1").subarray(5));
}

test("ext_authz decides as forward auth does", async () => {
  const credential = fc.constantFrom(
    "valid",
    "unshared",
    "later",
    "EXPIRED",
    "INSUFFICIENT_SCOPE",
    "IP_NOT_ALLOWED",
    "limited",
    "fault",
    "",
    "a,b",
  );
  const field: fc.Arbitrary<Fields[number]> = fc.oneof(
    credential.map((one) => ["Authorization", `Bearer ${one}`] as const),
    credential.map((one) => ["authorization", `Basic ${one}`] as const),
    credential.map((one) => ["X-Api-Key", one] as const),
    credential.map((one) => ["Cookie", `a=b; x-api-key=${one}`] as const),
    fc.constantFrom<Fields[number]>(
      ["Cookie", "c=d"],
      ["X-Other", "é"],
      ["required_scopes", "none"],
      ["Accept", "*/*"],
    ),
  );
  const asked = fc.record({
    headers: fc.array(field, { maxLength: 4 }),
    query: fc.option(credential.map((one) => `x-api-key=${encodeURIComponent(one)}`)),
    requiredScopes: fc.constantFrom(undefined, "", "read", "admin", "read admin", "é"),
    audience: fc.constantFrom(undefined, "", "orders"),
    unknown: fc.constantFrom(undefined, undefined, "x"),
  });
  await fc.assert(
    fc.asyncProperty(asked, async ({ headers, query, requiredScopes, audience, unknown }) => {
      const path = query === null ? "/path" : `/path?${query}`;
      const settings = Object.entries({ required_scopes: requiredScopes, audience, unknown }).flatMap(
        ([name, value]) => (value === undefined ? [] : [[name, value] as const]),
      );
      const parameters = settings.map(([name, value]) => `;${name}=${encodeURIComponent(value)}`).join("");
      const theirs = await forwardAuth(fast, {
        suffix: parameters + path,
        headers: [...headers, ["X-Forwarded-For", "203.0.113.7"]],
      });
      const message = described({ headers, path, extensions: Object.fromEntries(settings) });
      for (const subject of [fast, stock]) {
        const { body } = await observeHttp2(subject.url, call, [frame(message)]);
        const { status, headers: ours, text, reason } = decisionOf(answerIn(body));
        expect({ status, text, reason }).toEqual({ status: theirs.status, text: theirs.text, reason: theirs.reason });
        for (const [name, value] of Object.entries(ours)) expect(theirs.headers[name]).toBe(value);
      }
    }),
    { numRuns: 150 },
  );
  decisions.fast.splice(0);
  decisions.stock.splice(0);
});
