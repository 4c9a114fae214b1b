import { describe, expect, test } from "vitest";
import {
  expectRefused,
  importKey,
  invalid,
  newRawKey,
  revoke,
  succeeded,
  table,
  useService,
} from "../support/conformance.ts";
import { linesOf } from "../support/log-lines.ts";
import { issue, type Json, paths, verify } from "../support/rest.ts";

const suite = useService();
const { rest } = suite;
const text = expect.stringMatching(/./);

const batchPath = `${paths.imported}:batchCreate`;
const batch = (requests: readonly Json[]) => rest("POST", batchPath, { requests });
const item = (fields: Json = {}) => ({ raw_key: newRawKey(), name: "n", actor_id: "batch", ...fields });

const failure = (index: number, code: string) => ({
  index,
  error_code: `BATCH_CREATE_IMPORTED_API_KEYS_ERROR_${code}`,
  error_message: text,
  warnings: [],
});

async function count(): Promise<number> {
  const [row] = await suite.sql`SELECT count(*)::integer AS count FROM api_keys`;
  return row?.count;
}

describe("a batch", () => {
  test("imports its items in order, each like a single import", async () => {
    const items = [item({ name: "first", scopes: ["x"], ttl: "1h", metadata: { k: "v" } }), item({ name: "second" })];
    const body = succeeded(await batch(items));
    expect(body).toEqual({
      results: [
        {
          index: 0,
          imported_api_key: expect.objectContaining({ name: "first", scopes: ["x"], metadata: { k: "v" } }),
          warnings: [],
        },
        {
          index: 1,
          imported_api_key: expect.objectContaining({ name: "second", scopes: [], metadata: {} }),
          warnings: [],
        },
      ],
      success_count: 2,
      failure_count: 0,
    });
    for (const [index, { imported_api_key }] of body.results.entries()) {
      expect(succeeded(await rest("GET", `${paths.imported}/${imported_api_key.key_id}`))).toEqual(imported_api_key);
      expect(await verify(rest, items[index]?.raw_key)).toMatchObject({ key_id: imported_api_key.key_id });
    }
  });

  test("warns of raw keys that a header may not carry, and imports them", async () => {
    const { results } = succeeded(await batch([item(), item({ raw_key: `${newRawKey()},\n.` })]));
    expect(results.map(({ warnings }: Json) => warnings)).toEqual([
      [],
      [
        "raw_key: contains a line break, which is not allowed in a header",
        expect.stringMatching(/^raw_key: contains a comma/),
      ],
    ]);
    expect(results[1].imported_api_key).toBeDefined();
  });

  test("rejects raw keys of fewer than 8 characters, unless allow_weak is set", async () => {
    const [short, weak] = ["7 chars", "ü-weak"].map((raw_key) => item({ raw_key }));
    const { results } = succeeded(await batch([item(), short ?? {}, { ...weak, allow_weak: true }]));
    expect(results[1].error_message).toMatch(/^raw_key: has fewer than 8 characters .* allow_weak/);
    expect(await verify(rest, "ü-weak")).toMatchObject({ is_valid: true });
    expectRefused(await rest("POST", paths.imported, short), invalid("raw_key"));
    succeeded(await rest("POST", paths.imported, { ...short, allow_weak: true }));
    succeeded(await rest("POST", paths.imported, item({ raw_key: "8 chars." })));
  });

  test("logs its keys, in lines that are written in one piece", async () => {
    const requests = [...Array.from({ length: 100 }, () => item()), item({ ttl: "soon" })];
    const { results } = succeeded(await batch(requests));
    const keyIds = results.flatMap(({ imported_api_key }: Json) => imported_api_key?.key_id ?? []);
    const lines = linesOf(suite.server.log()).filter(
      ({ key_ids }) => key_ids?.includes(keyIds[0]) || key_ids?.includes(keyIds[99]),
    );
    expect(lines.flatMap(({ key_ids }) => key_ids)).toEqual(keyIds);
    const rpc = "keyhold.v2alpha1.ImportedApiKeysService/BatchCreateImportedApiKeys";
    for (const line of lines) {
      expect(line).toMatchObject({ rpc, caller: "none:anonymous", protocol: "rest", reqId: text });
      expect(JSON.stringify(line).length).toBeLessThan(4096);
    }
    const { results: single } = succeeded(await batch([item()]));
    const keyId = single[0].imported_api_key.key_id;
    expect(linesOf(suite.server.log()).at(-1)).toMatchObject({ rpc, key_id: keyId, msg: "request" });
  });

  test("with one valid item is 200, and each item has its own result", async () => {
    const { rawKey } = await importKey(rest);
    const { secret } = await issue(rest);
    const good = item();
    const items = [
      item({ raw_key: rawKey }),
      item({ name: "" }),
      item({ ttl: "soon" }),
      item({ raw_key: secret }),
      good,
      item({ metadata: { k: "v".repeat(4096) } }),
      item({ raw_key: good.raw_key, name: "the same key again" }),
      item({ raw_key: "" }),
      item({ scopes: ["a b"] }),
      {},
    ];
    expect(succeeded(await batch(items))).toEqual({
      results: [
        failure(0, "ALREADY_EXISTS"),
        failure(1, "INVALID_ARGUMENT"),
        failure(2, "INVALID_ARGUMENT"),
        failure(3, "INVALID_ARGUMENT"),
        { index: 4, imported_api_key: expect.objectContaining({ name: "n" }), warnings: [] },
        failure(5, "INVALID_ARGUMENT"),
        failure(6, "ALREADY_EXISTS"),
        failure(7, "INVALID_ARGUMENT"),
        failure(8, "INVALID_ARGUMENT"),
        failure(9, "INVALID_ARGUMENT"),
      ],
      success_count: 1,
      failure_count: 9,
    });
  });

  test("returns the error of each item, without its raw key", async () => {
    const bad = item({ actor_id: "" });
    const answer = await batch([item(), bad]);
    expect(answer.body.results[1].error_message).toContain("actor_id");
    expect(answer.text).not.toContain(bad.raw_key);
  });

  test("does not change existing keys", async () => {
    const { rawKey, keyId } = await importKey(rest, { name: "before" });
    await revoke(rest, keyId);
    succeeded(await batch([item(), item({ raw_key: rawKey, name: "after" })]));
    const record = succeeded(await rest("GET", `${paths.imported}/${keyId}`));
    expect(record).toMatchObject({ name: "before", status: "KEY_STATUS_REVOKED" });
  });
});

test("a batch may have 1000 items", async () => {
  const names = Array.from({ length: 1000 }, (_, index) => `key ${index}`);
  const body = succeeded(await batch(names.map((name) => item({ name }))));
  expect(body).toMatchObject({ success_count: 1000, failure_count: 0 });
  expect(body.results.map(({ index }: Json) => index)).toEqual([...names.keys()]);
  expect(body.results.map(({ imported_api_key }: Json) => imported_api_key.name)).toEqual(names);
});

const MALFORMED = [
  ["a misspelt field", { ...item(), scope: ["x"] }, "requests[1].scope"],
  ["a wrong type", { ...item(), name: 1 }, "requests[1].name"],
  ["no object", "legacy", "requests[1]"],
  ["null", null, "requests[1]"],
] as const;

describe("an item that is not an import request", () => {
  test.each(table(MALFORMED))(
    "because of %s makes the whole batch 400, and nothing is imported",
    async (_, malformed, field) => {
      const before = await count();
      expectRefused(await batch([item(), malformed]), invalid(field));
      expect(await count()).toBe(before);
    },
  );
});
