import { type DescMessage, type DescMethodUnary, fromBinary, fromJson, toBinary, toJson } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { importKey, useService } from "../support/conformance.ts";
import { issue, type Json } from "../support/rest.ts";
import { callGrpc, frame, REST_ROUTES, type RestRoute, RPCS, rpcPath, send } from "../support/wire.ts";

const suite = useService();

/** Records that the service acknowledged. */
const stored = new Set<string>();
const credentials: string[] = [];

beforeAll(async () => {
  for (let count = 0; count < 3; count++) {
    const made = await issue(suite.rest);
    const imported = await importKey(suite.rest);
    stored.add(made.keyId).add(imported.keyId);
    credentials.push(made.secret, imported.rawKey);
  }
});

/** Records the effects of a successful response; `text` is the request. */
function note({ name }: DescMethodUnary, answer: Json, text: string): void {
  if (name === "CreateIssuedApiKey") stored.add(answer.issued_api_key.key_id);
  if (name === "CreateImportedApiKey") stored.add(answer.key_id);
  const results: Json[] = name === "BatchCreateImportedApiKeys" ? answer.results : [];
  for (const { imported_api_key: key } of results) if (key) stored.add(key.key_id);
  if (name !== "DeleteImportedApiKey") return;
  for (const keyId of stored) if (text.toLowerCase().includes(keyId)) stored.delete(keyId);
}

async function expectStored(): Promise<void> {
  const rows = await suite.sql<{ key_id: string }[]>`SELECT key_id FROM api_keys`;
  expect(rows.map((row) => row.key_id).sort()).toEqual([...stored].sort());
  expect((await suite.rest("GET", "/health/ready")).status).toBe(200);
}

const anyText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.string(),
  fc.constantFrom("\0", "\ud800", "__proto__", "*", "1h", "-1s", "true", "null", "KEY_STATUS_ACTIVE", "a".repeat(5000)),
  fc.constantFrom("TOKEN_ALGORITHM_JWT", "REVOCATION_REASON_SUPERSEDED", "2026-01-01T00:00:00Z", "a_name"),
);
const known = fc.nat().map((place) => (place % 2 === 0 ? pick([...stored], place) : pick(credentials, place)));

function pick(texts: readonly string[], place: number): string {
  return texts[place % texts.length] ?? "";
}

const scalar = fc.oneof(
  anyText,
  known,
  fc.integer(),
  fc.double(),
  fc.boolean(),
  fc.constant(null),
  fc.constant(2 ** 40),
);

/** JSON with any values and mostly the names of the message's fields. */
function jsonOf(desc: DescMessage, depth = 3): fc.Arbitrary<unknown> {
  if (desc.fields.length === 0) return fc.oneof(fc.constant({}), fc.jsonValue());
  const entries = desc.fields.map(({ name, jsonName, message }) => {
    const inner = message && depth > 0 ? jsonOf(message, depth - 1) : fc.jsonValue({ maxDepth: 3 });
    const lists = [fc.array(scalar, { maxLength: 3 }), fc.array(inner, { maxLength: 3 })];
    const value = fc.oneof(scalar, inner, fc.dictionary(anyText, scalar), ...lists);
    return fc.tuple(fc.constantFrom(name, name, name, jsonName), value);
  });
  const strange = fc.tuple(anyText, scalar);
  const entry = fc.oneof({ weight: 12, arbitrary: fc.oneof(...entries) }, { weight: 1, arbitrary: strange });
  const object = fc.array(entry, { maxLength: 6 }).map((all) => Object.fromEntries(all));
  return fc.oneof({ weight: 9, arbitrary: object }, { weight: 1, arbitrary: fc.jsonValue() });
}

const text = anyText.map((odd) => odd.toWellFormed());
const mostly = <A, B>(good: fc.Arbitrary<A>, odd: fc.Arbitrary<B>) =>
  fc.oneof({ weight: 5, arbitrary: good }, { weight: 1, arbitrary: odd });

/** Plausible values of a request's fields by name; required fields are always present. */
const NEEDED: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  key_id: known,
  credential: known,
  name: mostly(fc.uuid(), text),
  actor_id: mostly(fc.uuid(), text),
  raw_key: mostly(fc.uuid(), text),
  algorithm: fc.constantFrom("TOKEN_ALGORITHM_JWT", "TOKEN_ALGORITHM_MACAROON"),
};
const POSSIBLE: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  ttl: mostly(fc.constantFrom("1h", "90d", "1.5h", ""), text),
  grace_period: mostly(fc.constantFrom("1h", "30d"), text),
  scopes: mostly(fc.subarray(["read", "write"]), fc.array(text, { maxLength: 3 })),
  metadata: fc.dictionary(text, text, { maxKeys: 3 }),
  request_id: mostly(fc.uuid(), text),
  reason: fc.constantFrom("REVOCATION_REASON_SUPERSEDED", "REVOCATION_REASON_PRIVILEGE_WITHDRAWN"),
  revocation_description: text,
  custom_claims: fc.dictionary(text, fc.oneof(text, fc.integer(), fc.constant(null)), { maxKeys: 3 }),
  page_size: fc.integer({ min: -1, max: 2000 }),
  page_token: text,
  filter: mostly(fc.constantFrom("name:a*", "NOT status=KEY_STATUS_REVOKED", 'metadata.a="b"', "scopes:read"), text),
  update_mask: fc.constantFrom("name", "scopes,metadata", "*"),
};

const updateOf = fc.record(
  { key_id: known, name: mostly(fc.uuid(), text), scopes: fc.subarray(["read", "write"]) },
  { requiredKeys: ["key_id"] },
);

/** Mostly valid requests of the RPC, with an odd string now and then. */
function goodOf(desc: DescMessage): fc.Arbitrary<Json> {
  const values: Record<string, fc.Arbitrary<unknown>> = {};
  for (const { name, message } of desc.fields) {
    const value = NEEDED[name] ?? POSSIBLE[name];
    if (value !== undefined) values[name] = value;
    else if (name === "requests" && message) values[name] = fc.array(goodOf(message), { minLength: 1, maxLength: 3 });
    else if (name.endsWith("_api_key") && message) values[name] = updateOf;
  }
  return fc.record(values, { requiredKeys: Object.keys(values).filter((name) => !(name in POSSIBLE)) });
}

function restCall(route: RestRoute) {
  const { input } = route.rpc;
  const queryName = fc.constantFrom(...input.fields.map(({ name }) => name), "unknown");
  const strangeId = fc.oneof(
    anyText.map((text) => encodeURIComponent(text.toWellFormed())),
    fc.webPath(),
  );
  return fc.record({
    route: fc.constant(route),
    keyId: fc.oneof(known, known, strangeId),
    query: fc.array(fc.tuple(queryName, anyText), { maxLength: 2 }),
    body: fc.oneof(jsonOf(input), goodOf(input)),
  });
}

test("random JSON to a REST path causes no server error, and the response matches the stored record", async () => {
  let successes = 0;
  const ask = fc.asyncProperty(fc.oneof(...REST_ROUTES.map(restCall)), async ({ route, keyId, query, body }) => {
    const { rpc, httpMethod, path } = route;
    const hasBody = httpMethod === "POST" || httpMethod === "PATCH";
    const fields = query.map(([name, text]) => `${name}=${encodeURIComponent(text.toWellFormed())}`).join("&");
    const url = `${suite.server.url}${path(keyId)}${fields === "" ? "" : `?${fields}`}`;
    const answer = await send(url, httpMethod, hasBody ? JSON.stringify(body) : undefined, {
      "content-type": "application/json",
    });
    expect(answer.status).toBeLessThan(500);
    if (answer.status >= 400)
      expect(answer.body.error).toMatchObject({ code: answer.status, message: expect.any(String) });
    if (answer.status !== 200) return;
    successes++;
    note(rpc, answer.body, url);
  });
  await fc.assert(ask, { numRuns: 600 });
  expect(successes).toBeGreaterThan(5);
  await expectStored();
});

/** Any bytes, or a valid message with some bytes changed. */
function binaryCall(rpc: DescMethodUnary) {
  const good = goodOf(rpc.input).map((json) => toBinary(rpc.input, fromJson(rpc.input, json)));
  const change = fc.tuple(fc.nat(), fc.nat({ max: 255 }));
  const mutated = fc.tuple(good, fc.array(change, { maxLength: 3 })).map(([bytes, changes]) => {
    for (const [place, byte] of changes) if (bytes.length > 0) bytes[place % bytes.length] = byte;
    return bytes;
  });
  return fc.record({ rpc: fc.constant(rpc), bytes: fc.oneof(fc.uint8Array({ maxLength: 200 }), mutated, mutated) });
}

const anyCall = fc.oneof(...RPCS.map(binaryCall));

function noteBinary(rpc: DescMethodUnary, asked: Uint8Array, answer: Uint8Array): void {
  const json = toJson(rpc.output, fromBinary(rpc.output, answer), {
    useProtoFieldName: true,
    alwaysEmitImplicit: true,
  });
  note(rpc, json, Buffer.from(asked).toString("latin1"));
}

test("random bytes to an RPC over Connect cause no server error, and the response matches the stored record", async () => {
  let successes = 0;
  const ask = fc.asyncProperty(anyCall, async ({ rpc, bytes }) => {
    const headers = { "content-type": "application/proto" };
    const response = await fetch(suite.server.url + rpcPath(rpc), {
      method: "POST",
      body: Buffer.from(bytes),
      headers,
    });
    const answer = Buffer.from(await response.arrayBuffer());
    expect(response.status).toBeLessThan(500);
    if (!response.ok) return;
    successes++;
    noteBinary(rpc, bytes, answer);
  });
  await fc.assert(ask, { numRuns: 400 });
  expect(successes).toBeGreaterThan(5);
  await expectStored();
});

const FAULTS: readonly (Code | undefined)[] = [undefined, Code.Unknown, Code.Internal, Code.Unavailable, Code.DataLoss];

test("random bytes to an RPC over gRPC cause no server error, and the response matches the stored record", async () => {
  let successes = 0;
  const ask = fc.asyncProperty(anyCall, fc.boolean(), async ({ rpc, bytes }, isFramed) => {
    const sent = isFramed ? frame(bytes) : bytes;
    const answer = await callGrpc(suite.server.url, rpcPath(rpc), sent);
    expect(FAULTS).not.toContain(answer.status);
    if (answer.status !== 0) return;
    successes++;
    noteBinary(rpc, bytes, answer.data.subarray(5));
  });
  await fc.assert(ask, { numRuns: 300 });
  expect(successes).toBeGreaterThan(5);
  await expectStored();
});
