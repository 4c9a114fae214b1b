import { describe, expect, test } from "vitest";
import {
  alreadyExists,
  expectRefused,
  importKey,
  keyKinds,
  newRawKey,
  recordsOf,
  revoke,
  succeeded,
  table,
  useService,
  withQuery,
} from "../support/conformance.ts";
import { issue, type Json, paths, verify } from "../support/rest.ts";
import { ROOT_SECRET } from "../support/server.ts";

const suite = useService();
const { rest } = suite;

let requests = 0;
/** Visible ASCII of the maximum length. */
const newRequestId = () => `request-${requests++}-`.padEnd(128, "~");

describe.each(keyKinds(rest))("a request to create an $kind key with a request_id", ({ path, required }) => {
  const more = { scopes: ["a", "b"], ttl: "1h", metadata: { k: "v", l: "w" } };
  const fields = () => ({ ...required(), ...more, name: "n", actor_id: newRawKey() });
  const make = (body: Json) => rest("POST", path, body);
  const recordOf = (body: Json) => body.issued_api_key ?? body;

  async function countOf(actor_id: string): Promise<number> {
    return recordsOf(succeeded(await rest("GET", withQuery(path, { filter: `actor_id="${actor_id}"` })))).length;
  }

  test("that is retried returns the first record, without a secret, and creates no second key", async () => {
    const body = { ...fields(), request_id: newRequestId() };
    const first = succeeded(await make(body));
    for (let i = 0; i < 3; i++) {
      const again = succeeded(await make(body));
      expect(recordOf(again)).toEqual(recordOf(first));
      expect(again).not.toHaveProperty("secret");
    }
    expect(await countOf(body.actor_id)).toBe(1);
  });

  test("that is retried in an equivalent form is a retry", async () => {
    const { actor_id, ...body } = { ...fields(), request_id: newRequestId() };
    const first = succeeded(await make({ ...body, actor_id }));
    const { request_id: requestId, metadata, ...others } = body;
    const same = {
      requestId,
      actorId: actor_id,
      metadata: Object.fromEntries(Object.entries(metadata).reverse()),
      ...others,
    };
    expect(recordOf(succeeded(await make(same)))).toEqual(recordOf(first));
  });

  test("that is retried after a change of the key returns its current record", async () => {
    const body = { ...fields(), request_id: newRequestId() };
    const { key_id } = recordOf(succeeded(await make(body)));
    succeeded(await rest("PATCH", `${path}/${key_id}`, { name: "other" }));
    await revoke(rest, key_id);
    expect(recordOf(succeeded(await make(body)))).toMatchObject({
      key_id,
      name: "other",
      status: "KEY_STATUS_REVOKED",
    });
  });

  const OTHERS: readonly Json[] = [
    { name: "other" },
    { actor_id: "other" },
    { scopes: ["a"] },
    { scopes: ["b", "a"] },
    { scopes: undefined },
    { ttl: "2h" },
    { ttl: undefined },
    { metadata: { k: "v" } },
    { metadata: { k: "v", l: "x" } },
  ];

  test.each(table(OTHERS))("that was used for another request, %j, is 409", async (change) => {
    const body = { ...fields(), request_id: newRequestId() };
    succeeded(await make(body));
    expectRefused(await make({ ...body, ...change }), alreadyExists("REQUEST_ID_REUSED", "request_id"));
    expect(await countOf(body.actor_id)).toBe(1);
  });

  test("that fails may be retried with the same request_id", async () => {
    const body = { ...fields(), request_id: newRequestId() };
    expect((await make({ ...body, name: "" })).status).toBe(400);
    expect(recordOf(succeeded(await make(body)))).toMatchObject({ name: "n" });
  });

  test("that differs creates another key", async () => {
    const body = fields();
    const first = recordOf(succeeded(await make({ ...body, request_id: newRequestId() })));
    const other = path === paths.imported ? { ...body, raw_key: newRawKey() } : body;
    const second = recordOf(succeeded(await make({ ...other, request_id: newRequestId() })));
    expect(second.key_id).not.toBe(first.key_id);
    expect(await countOf(body.actor_id)).toBe(2);
  });

  test("is in no record", async () => {
    const request_id = newRequestId();
    expect((await make({ ...fields(), request_id })).text).not.toContain(request_id);
  });
});

describe("a request_id", () => {
  test("belongs to one kind of key; the other kind may use the same", async () => {
    const request_id = newRequestId();
    const { keyId } = await issue(rest, { request_id });
    expect((await importKey(rest, { request_id })).keyId).not.toBe(keyId);
  });

  test("of an import with another raw key is 409", async () => {
    const body = { name: "n", actor_id: "a", raw_key: newRawKey(), request_id: newRequestId() };
    succeeded(await rest("POST", paths.imported, body));
    const other = { ...body, raw_key: newRawKey() };
    expectRefused(await rest("POST", paths.imported, other), alreadyExists("REQUEST_ID_REUSED", "request_id"));
    expect(await verify(rest, other.raw_key)).toMatchObject({ is_valid: false });
  });

  test("that is new does not make a known raw key a retry", async () => {
    const body = { name: "n", actor_id: "a", raw_key: newRawKey(), request_id: newRequestId() };
    succeeded(await rest("POST", paths.imported, body));
    for (const request_id of [newRequestId(), undefined]) {
      const again = await rest("POST", paths.imported, { ...body, request_id });
      expectRefused(again, alreadyExists("RAW_KEY_ALREADY_EXISTS", "raw_key"));
    }
  });

  test("of a deleted key creates a new one", async () => {
    const body = { name: "n", actor_id: "a", raw_key: newRawKey(), request_id: newRequestId() };
    const first = succeeded(await rest("POST", paths.imported, body));
    succeeded(await rest("DELETE", `${paths.imported}/${first.key_id}`));
    expect(succeeded(await rest("POST", paths.imported, body)).key_id).not.toBe(first.key_id);
  });
});

describe("a batch import", () => {
  const batch = (requests: Json[]) => rest("POST", `${paths.imported}:batchCreate`, { requests });
  const item = () => ({ name: "n", actor_id: "a", raw_key: newRawKey(), request_id: newRequestId() });

  test("that is retried returns the first records", async () => {
    const items = [item(), item(), item()];
    const first = succeeded(await batch(items));
    expect(succeeded(await batch(items))).toEqual(first);
  });

  test("that stopped half way is completed by a retry", async () => {
    const items = [item(), item(), item()];
    const [done] = items;
    const { key_id } = succeeded(await rest("POST", paths.imported, done));
    const { results, success_count } = succeeded(await batch(items));
    expect(success_count).toBe(3);
    expect(results[0].imported_api_key.key_id).toBe(key_id);
  });

  test("with a duplicate item creates one key and returns it twice", async () => {
    const one = item();
    const { results } = succeeded(await batch([one, item(), one]));
    expect(results[2].imported_api_key).toEqual(results[0].imported_api_key);
  });

  test("with one request_id for two raw keys imports the first", async () => {
    const one = item();
    const body = succeeded(await batch([one, { ...one, raw_key: newRawKey() }]));
    expect(body).toMatchObject({ success_count: 1, failure_count: 1 });
    expect(body.results[1]).toMatchObject({ error_code: "BATCH_CREATE_IMPORTED_API_KEYS_ERROR_ALREADY_EXISTS" });
  });
});

test("a retry after a rotation of the root secret is still a retry", async () => {
  const importing = { name: "n", actor_id: "a", raw_key: newRawKey(), request_id: newRequestId() };
  const issuing = { name: "n", actor_id: "a", request_id: newRequestId() };
  const imported = succeeded(await rest("POST", paths.imported, importing));
  const { issued_api_key } = succeeded(await rest("POST", paths.issued, issuing));
  const rotated = { KEYHOLD_ROOT_SECRET: `next-${ROOT_SECRET}`, KEYHOLD_ROOT_SECRETS_RETIRED: ROOT_SECRET };
  await suite.server.restart(rotated);
  expect(succeeded(await rest("POST", paths.imported, importing))).toEqual(imported);
  expect(succeeded(await rest("POST", paths.issued, issuing))).toEqual({ issued_api_key });
  for (const request_id of [newRequestId(), undefined]) {
    const other = await rest("POST", paths.imported, { ...importing, request_id });
    expectRefused(other, alreadyExists("RAW_KEY_ALREADY_EXISTS", "raw_key"));
  }
});
