import { randomBytes, randomUUID } from "node:crypto";
import { describe, expect, test } from "vitest";
import { HMAC_KEY, ISSUED, MONTHLY, SAMPLES, WEBHOOK_ENDPOINT } from "../../../tools/openapi/examples/samples.ts";
import { importKey, newRawKey, revoke, succeeded, table } from "../../support/conformance.ts";
import { useGuardedService } from "../../support/guarded.ts";
import { type Answer, issue, type Json, paths, type RestClient } from "../../support/rest.ts";
import { contentOf, document, type Example, examples, operations, refOf, validator } from "./document.ts";

/** Compares the document with a live server that requires a credential. */
const suite = useGuardedService(() => ({ KEYHOLD_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8" }));

/** Other statuses cannot be provoked on a healthy server. */
const SENT = examples.filter(({ status }) => status !== 503);

const lists = operations.filter(({ operation }) => /_List.*ApiKeys$/.test(operation.operationId));
const updates = SENT.filter(
  ({ operation, status }) => /_Update.*ApiKey$/.test(operation.operationId) && status === 200,
);

test.for(table(SENT.map((example) => [`${example.operation.operationId} ${example.name}`, example] as const)))(
  "%s is answered as documented",
  async ([, example]) => {
    const put = await putInPlaces(suite.rest);
    const answer = await send(suite.rest, put(example));
    expectDescribed(example, answer);
    expect(factsOf(answer.body)).toEqual(factsOf(put(example.response)));
  },
);

describe("an operation with a credential is refused as documented:", () => {
  const guarded = SENT.filter(({ status, operation }) => status === 200 && operation.security.length > 0);

  test.for(table(guarded.map((example) => [example.operation.operationId, example] as const)))(
    "%s without a credential, and without its scope",
    async ([, example]) => {
      expectDescribed({ ...example, status: 401 }, await send(suite.as(null), example));
      expectDescribed({ ...example, status: 403 }, await send(suite.as(await otherToken(example)), example));
    },
  );
});

/** Returns a credential without the scope of an operation. */
async function otherToken({ operation }: Example): Promise<string> {
  const [service] = operation.tags;
  if (service === "CallersService") return (await issue(suite.rest)).secret;
  return suite.token(["ApiKeysService", "Introspection"].includes(service) ? "keyhold:keys.delete" : "keyhold:verify");
}

describe("an operation with a body is refused as documented:", () => {
  const bodies = SENT.filter(({ status, body, isForm }) => status === 200 && body !== undefined && !isForm);

  test.for(table(bodies.map((one) => [`${one.operation.operationId} ${one.name}`, one] as const)))(
    "%s with an unknown field, which the schema does not forbid",
    async ([, one]) => {
      const body = { ...one.body, misspelt: true };
      expectDescribed({ ...one, status: 400 }, await send(suite.rest, { ...one, body }));
    },
  );

  const example = exampleOf("ApiKeysService_VerifyApiKey");

  test("a body of another type", async () => {
    const answer = await suite.rest("POST", example.path, example.body, { "content-type": "text/plain" });
    expectDescribed({ ...example, status: 415 }, answer);
  });

  test("a compressed body", async () => {
    const answer = await suite.rest("POST", example.path, example.body, { "content-encoding": "gzip" });
    expectDescribed({ ...example, status: 415 }, answer);
  });

  test("a body that is too large", async () => {
    const answer = await suite.rest("POST", example.path, { credential: "x".repeat(1_100_000) });
    expectDescribed({ ...example, status: 413 }, answer);
  });
});

test.for(table(lists.map((one) => [one.operation.operationId, one] as const)))(
  "%s with the parameters that a viewer fills in returns the same as without",
  async ([, { path, operation }]) => {
    await putInPlaces(suite.rest);
    const shown = operation.parameters.flatMap(({ name, examples: named }: Json) =>
      named === undefined ? [] : [[name, String(Object.values<Json>(named)[0].value)]],
    );
    expect(shown.map(([name]: Json) => name)).toEqual(["page_size", "filter"]);
    // A background job writes last_used_time, also between two reads.
    const read = async (target: string) => {
      const { status, body } = await suite.rest("GET", target);
      return JSON.stringify({ status, body }, (name, value) => (name === "last_used_time" ? undefined : value));
    };
    const filtered = await read(`${path}?${new URLSearchParams(shown)}`);
    expect(filtered).toContain('{"status":200,');
    expect(filtered).toBe(await read(path));
  },
);

test.for(table(updates.map((one) => [one.operation.operationId, one] as const)))(
  "%s without update_mask, and wrapped as its description says",
  async ([, one]) => {
    const { description } = document.components.schemas[refOf(contentOf(one.operation.requestBody).schema)];
    const wrapped = JSON.parse(/`(\{.*\})`/.exec(description)?.[1] ?? "");
    const { key_id } = (await putInPlaces(suite.rest))(one.parameters);
    for (const body of [{ name: "new name" }, wrapped]) {
      const answer = await send(suite.rest, { ...one, parameters: { key_id }, body } as Example);
      expectDescribed(one, answer);
      expect(answer.body.name).toBe("new name");
    }
  },
);

test("any other error has the form of `default`", async () => {
  const answer = await suite.rest("POST", "/v2alpha1/nothing", {});
  const isError = validator({ $ref: "#/components/schemas/ErrorResponse" });
  expect(answer.status).toBe(404);
  expect(isError(answer.body) ? [] : isError.errors).toEqual([]);
});

test("a known JWKS is 304", async () => {
  const path = "/v2alpha1/derivedKeys/jwks.json";
  const { headers } = await suite.rest("GET", path);
  const { status } = await suite.rest("GET", path, undefined, { "if-none-match": headers.get("etag") ?? "" });
  expect(operations.find((one) => one.path === path)?.operation.responses[status]).toBeDefined();
  expect(status).toBe(304);
});

test("a bug is answered as documented", async () => {
  const verify = () => suite.rest("POST", `${paths.keys}:verify`, { credential: newRawKey() });
  await suite.sql`ALTER TABLE api_keys RENAME TO renamed`;
  try {
    expectDescribed({ ...exampleOf("ApiKeysService_VerifyApiKey"), status: 500 }, await verify());
  } finally {
    await suite.sql`ALTER TABLE renamed RENAME TO api_keys`;
  }
});

test("too many calls are answered as documented", async () => {
  await suite.server.restart({ KEYHOLD_AUTH: "admin-token", KEYHOLD_PUBLIC_RATE: "1" });
  const { path } = exampleOf("DerivedKeysService_GetJwks");
  const calls = await Promise.all(Array.from({ length: 20 }, () => suite.as(null)("GET", path)));
  const refused = calls.find(({ status }) => status !== 200);
  if (refused === undefined) throw new Error("no call was refused");
  expectDescribed({ ...exampleOf("DerivedKeysService_GetJwks"), status: 429 }, refused);
});

/** Creates the resources of the samples and returns a function that substitutes them. */
async function putInPlaces(rest: RestClient): Promise<<T>(value: T) => T> {
  // Lists show the newest first.
  const limited = await issue(rest, { ...ISSUED, quotas: [MONTHLY] });
  const issued = await issue(rest, createdBy("IssuedApiKeysService_CreateIssuedApiKey", "issue"));
  const imported = await importKey(rest, {
    ...createdBy("ImportedApiKeysService_CreateImportedApiKey", "import"),
    raw_key: newRawKey(),
  });
  const revoked = await issue(rest);
  await revoke(rest, revoked.keyId);
  const usedRequestId = randomUUID();
  const { hmacKeyId, newHmacKeyId, unknownHmacKeyId, unknownEventSeq } = SAMPLES;
  await issue(rest, { request_id: usedRequestId });
  const filter = encodeURIComponent(`key_id="${issued.keyId}"`);
  const [event] = succeeded(await rest("GET", `${paths.auditEvents}?filter=${filter}`)).audit_events;
  const { webhookEndpointId, newWebhookEndpointId, unknownWebhookEndpointId } = SAMPLES;
  // Nothing listens there.
  const webhookUrl = "https://127.0.0.1:1/keyhold";
  const webhookDeliveryId = await testedEndpoint(rest, { ...WEBHOOK_ENDPOINT, url: webhookUrl });
  await rest("DELETE", `${paths.webhookEndpoints}/${newWebhookEndpointId}`);
  await putUsage(issued.keyId);
  const { limitedActorId, unknownActorId, keyPageSessionId, keyPageUrl } = SAMPLES;
  const monthly = { name: "monthly", limit: 10_000, period: "QUOTA_PERIOD_MONTH" };
  const limits = { rate_limits: [{ name: "requests", quota: 600, window: "1m" }], quotas: [monthly] };
  await rest("PATCH", `${paths.actors}/${limitedActorId}`, { actor: limits, update_mask: "rate_limits,quotas" });
  const places: Readonly<Record<keyof typeof SAMPLES, string>> = {
    issuedKeyId: issued.keyId,
    importedKeyId: imported.keyId,
    revokedKeyId: revoked.keyId,
    quotaKeyId: limited.keyId,
    unknownKeyId: SAMPLES.unknownKeyId,
    secret: issued.secret,
    revokedSecret: revoked.secret,
    rawKey: imported.rawKey,
    newRawKey: newRawKey(),
    usedRequestId,
    newSha256: randomBytes(32).toString("hex"),
    // There can be only 100.
    ...{ hmacKeyId, newHmacKeyId, unknownHmacKeyId },
    ...{ limitedActorId, unknownActorId, keyPageSessionId, keyPageUrl },
    ...{ webhookEndpointId, newWebhookEndpointId, unknownWebhookEndpointId, webhookUrl, webhookDeliveryId },
    ...{ issuedEventSeq: event.seq, creatorKeyId: event.caller.key_id, unknownEventSeq },
  };
  await rest("DELETE", `${paths.hmacKeys}/${newHmacKeyId}`);
  succeeded(await rest("POST", paths.hmacKeys, HMAC_KEY));
  return (value) => {
    let text = JSON.stringify(value);
    for (const [name, sample] of Object.entries(SAMPLES)) {
      text = text.replaceAll(sample, places[name as keyof typeof SAMPLES]);
    }
    return JSON.parse(text);
  };
}

/** Adds usage of a key: in this hour, and on the day of the examples. */
async function putUsage(keyId: string): Promise<void> {
  await suite.sql`SELECT usage_flush(gen_random_uuid(), 1, ${[keyId, keyId]}::uuid[], '{EXPIRED,units/tokens}', '{1,9}')`;
  await suite.sql`SELECT usage_live_partition('2026-11-22')`;
  await suite.sql`UPDATE usage_log SET first_day = '2026-11-22'`;
  await suite.sql`
    INSERT INTO key_usage (key_id, count, day, outcome, hours)
    VALUES (${keyId}, 2, '2026-11-22', 'VALID', '[9:9]={2}'), (${keyId}, 1, '2026-11-22', 'EXPIRED', '[9:9]={1}')`;
}

/** Creates a webhook endpoint, and returns the id of a test event after its first attempt. */
async function testedEndpoint(rest: RestClient, fields: Json): Promise<string> {
  const path = `${paths.webhookEndpoints}/${fields.endpoint_id}`;
  await rest("DELETE", path);
  succeeded(await rest("POST", paths.webhookEndpoints, fields));
  const { delivery_id } = succeeded(await rest("POST", `${path}:sendTestEvent`, {}));
  await expect
    .poll(async () => succeeded(await rest("GET", `${path}/deliveries`)).webhook_deliveries[0].attempts, {
      timeout: 10_000,
    })
    .toHaveLength(1);
  return delivery_id;
}

function exampleOf(operationId: string): Example {
  const found = SENT.find(({ operation }) => operation.operationId === operationId);
  if (found === undefined) throw new Error(`${operationId} has no example`);
  return found;
}

/** The request of an example that creates a key. */
function createdBy(operationId: string, name: string): Json {
  const found = examples.find((one) => one.operation.operationId === operationId && one.name === name);
  const { request_id: _, ...fields }: Json = found?.body ?? {};
  return fields;
}

function send(rest: RestClient, { httpMethod, path, parameters, body, isForm }: Example): Promise<Answer> {
  const all = Object.entries(parameters);
  const inPath = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(parameters[name]?.value ?? ""));
  const inQuery = all.filter(([, one]) => one.in === "query").map(([name, { value }]) => [name, String(value)]);
  const query = inQuery.length === 0 ? "" : `?${new URLSearchParams(inQuery)}`;
  return rest(httpMethod, inPath + query, isForm ? new URLSearchParams(body) : body);
}

/** Checks status, content type, headers and body against the document. */
function expectDescribed({ operation, status }: Example, answer: Answer): void {
  expect({ status: answer.status, text: answer.status === status ? "" : answer.text }).toEqual({ status, text: "" });
  const described = operation.responses[status];
  const isAnswer = validator(contentOf(described).schema);
  expect(isAnswer(answer.body) ? [] : isAnswer.errors).toEqual([]);
  // The description contains its reason; OAuth's errors are one.
  const { error } = answer.body;
  const reason = error?.details?.[0].reason ?? error;
  if (status >= 400) expect(described.description).toContain(`\`${reason}\``);
  const common: string | undefined = contentOf(described).examples?.[reason]?.$ref;
  if (common !== undefined) expect(answer.body).toEqual(commonExample(common));
  // Responses that may not be cached say so; the document describes only how long others may.
  const sent = Object.keys(document.components.headers).filter(
    (name) => (answer.headers.get(name) ?? "no-store") !== "no-store",
  );
  expect(Object.keys(described.headers ?? {}).sort()).toEqual(sent.sort());
}

function commonExample(reference: string): Json {
  return document.components.examples[reference.slice(reference.lastIndexOf("/") + 1)].value;
}

/** Returns the names and types in a body; the values only of errors and statuses. */
function factsOf(value: Json, name = ""): Json {
  if (Array.isArray(value)) return value.slice(0, 2).map((item) => factsOf(item, name));
  if (typeof value !== "object" || value === null) return VISIBLE.has(name) ? value : typeof value;
  return Object.fromEntries(
    Object.entries(value)
      .map(([key, member]) => [key, factsOf(member, key)] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}

const VISIBLE = new Set([
  ...["code", "status", "reason", "message", "field", "description", "error_code", "error_message", "index"],
  ...["is_valid", "credential_type", "revocation_reason", "success_count", "failure_count", "scopes", "kty", "alg"],
  ...["name", "actor_id", "env", "issuer"],
]);
