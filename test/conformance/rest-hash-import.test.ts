import { describe, expect, test } from "vitest";
import {
  alreadyExists,
  derive,
  expectRefused,
  importKey,
  invalid,
  newRawKey,
  RFC_3339_UTC,
  revoke,
  succeeded,
  table,
  useService,
  withQuery,
} from "../support/conformance.ts";
import { forwardAuth } from "../support/forward-auth.ts";
import { adopted, hmacOf, importHashed, scryptOf, sha256Of } from "../support/hashed-keys.ts";
import { introspect } from "../support/introspect.ts";
import { inHours, type Json, paths, verify } from "../support/rest.ts";

const suite = useService({
  KEYHOLD_GATEWAYS: "forward-auth",
  KEYHOLD_GATEWAY_CALLERS: "network",
  KEYHOLD_GATEWAY_NETWORKS: "127.0.0.1",
});
const { rest } = suite;
const time = expect.stringMatching(RFC_3339_UTC);
const KEY = { name: "a key", actor_id: "actor_1" };
const create = (body: Json) => rest("POST", paths.imported, { ...KEY, ...body });

const HASHES = [
  ["fast", (rawKey: string) => sha256Of(rawKey)],
  ["slow", (rawKey: string) => scryptOf(rawKey)],
] as const;

describe.each(HASHES)("a key of which only a %s hash is known", (_, hashOf) => {
  const importOne = (fields: Json = {}, rawKey = newRawKey()) => importHashed(rest, fields, rawKey, hashOf(rawKey));

  test("is imported, verified by its raw key and adopted", async () => {
    const { rawKey, keyId, record } = await importOne({ scopes: ["read"], metadata: { k: "v" } });
    expect(record).toMatchObject({ hash_algorithm: expect.stringMatching(/^HASH_ALGORITHM_/), hint: "" });
    expect(record.adopt_time).toBeUndefined();
    expect(await verify(rest, rawKey)).toMatchObject({ is_valid: true, key_id: keyId, scopes: ["read"] });
    const after = await adopted(rest, keyId);
    expect(after).toMatchObject({ adopt_time: time, scopes: ["read"], metadata: { k: "v" }, hint: "" });
    expect(after.hash_algorithm).toBeUndefined();
    expect(await verify(rest, rawKey)).toMatchObject({ is_valid: true, key_id: keyId });
  });

  test("is listed by adopted and hash_algorithm, in both services", async () => {
    const actor_id = newRawKey();
    const [one, other] = [await importOne({ actor_id }), await importOne({ actor_id })];
    const native = await importKey(rest, { actor_id });
    await verify(rest, other.rawKey);
    await adopted(rest, other.keyId);
    const found = async (path: string, filter: string) => {
      const body = succeeded(await rest("GET", withQuery(path, { filter: `actor_id="${actor_id}" ${filter}` })));
      return (body.api_keys ?? body.imported_api_keys).map(({ key_id }: Json) => key_id).sort();
    };
    for (const path of [paths.imported, paths.keys]) {
      expect(await found(path, "adopted = false")).toEqual([one.keyId]);
      expect(await found(path, "adopted = true")).toEqual([other.keyId]);
      expect(await found(path, "NOT adopted = false")).toEqual([other.keyId, native.keyId].sort());
      expect(await found(path, `hash_algorithm = ${one.record.hash_algorithm}`)).toEqual([one.keyId]);
    }
  });

  test("is rejected as revoked, disabled, expired or deleted, and only for its raw key", async () => {
    const wrong = (rawKey: string) => verify(rest, `${rawKey}-wrong`);
    const unknown = await verify(rest, newRawKey());
    const revoked = await importOne();
    await revoke(rest, revoked.keyId);
    expect(await verify(rest, revoked.rawKey)).toMatchObject({ error_code: "VERIFICATION_ERROR_REVOKED" });
    const disabled = await importOne();
    succeeded(await rest("POST", `${paths.imported}/${disabled.keyId}:disable`, {}));
    expect(await verify(rest, disabled.rawKey)).toMatchObject({ error_code: "VERIFICATION_ERROR_DISABLED" });
    succeeded(await rest("POST", `${paths.imported}/${disabled.keyId}:enable`, {}));
    expect(await verify(rest, disabled.rawKey)).toMatchObject({ is_valid: true });
    const deleted = await importOne();
    succeeded(await rest("DELETE", `${paths.imported}/${deleted.keyId}`));
    expect(await verify(rest, deleted.rawKey)).toEqual(unknown);
    for (const { rawKey } of [revoked, disabled, deleted]) expect(await wrong(rawKey)).toEqual(unknown);
  });

  test("expires unless it is adopted before adopt_before_time, and lives on otherwise", async () => {
    const [before, later] = [inHours(1), inHours(2)];
    const inTime = await importOne({ adopt_before_time: before, expire_time: later });
    expect(inTime.record).toMatchObject({ adopt_before_time: before, expire_time: before });
    await verify(rest, inTime.rawKey);
    const after = await adopted(rest, inTime.keyId);
    expect(after).toMatchObject({ expire_time: later });
    expect(after.adopt_before_time).toBeUndefined();
    const late = await importOne({ adopt_before_time: before });
    await suite.sql`
      UPDATE api_keys SET adopt_before_time = now() - interval '1 s', expire_time = now() - interval '1 s'
      WHERE key_id = ${late.keyId}`;
    expect(await verify(rest, late.rawKey)).toMatchObject({ error_code: "VERIFICATION_ERROR_EXPIRED" });
    expect(succeeded(await rest("GET", `${paths.imported}/${late.keyId}`))).toMatchObject({
      status: "KEY_STATUS_EXPIRED",
    });
  });

  test("loses adopt_before_time by an update of its expiry, and by no other", async () => {
    const { keyId, rawKey } = await importOne({ adopt_before_time: inHours(1) });
    const update = async (query: string, body: Json) =>
      succeeded(await rest("PATCH", `${paths.imported}/${keyId}?update_mask=${query}`, body));
    expect((await update("name", { name: "another" })).adopt_before_time).toEqual(time);
    const later = inHours(3);
    const updated = await update("expire_time", { expire_time: later });
    expect(updated).toMatchObject({ expire_time: later, hash_algorithm: expect.any(String) });
    expect(updated.adopt_before_time).toBeUndefined();
    await verify(rest, rawKey);
    expect(await adopted(rest, keyId)).toMatchObject({ expire_time: later });
  });

  test("is adopted by each call that accepts it", async () => {
    const uses: readonly (readonly [string, (rawKey: string) => Promise<unknown>])[] = [
      ["verify", (rawKey) => verify(rest, rawKey)],
      [
        "batchVerify",
        (rawKey) =>
          rest("POST", `${paths.keys}:batchVerify`, {
            requests: [{ credential: rawKey }, { credential: newRawKey() }],
          }),
      ],
      ["derive", (rawKey) => derive(rest, rawKey)],
      ["introspect", (rawKey) => introspect(suite.server, { token: rawKey })],
      ["forward auth", (rawKey) => forwardAuth(suite.server, { headers: [["Authorization", `Bearer ${rawKey}`]] })],
    ];
    for (const [, use] of uses) {
      const { rawKey, keyId } = await importOne();
      await use(rawKey);
      expect(await adopted(rest, keyId)).toMatchObject({ adopt_time: time });
    }
  });

  test("is explained without being adopted, and revokes itself", async () => {
    const { rawKey, keyId } = await importOne();
    const explained = succeeded(await rest("POST", `${paths.keys}:explain`, { credential: rawKey }));
    expect(explained).toMatchObject({ is_valid: true, key_id: keyId });
    expect(succeeded(await rest("GET", `${paths.imported}/${keyId}`)).hash_algorithm).toBeDefined();
    succeeded(await rest("POST", paths.selfRevoke, { credential: rawKey }));
    expect(await verify(rest, rawKey)).toMatchObject({ error_code: "VERIFICATION_ERROR_REVOKED" });
  });

  test("survives a restart of the server before its first verification", async () => {
    const { rawKey, keyId } = await importOne();
    await suite.server.restart();
    expect(await verify(rest, rawKey)).toMatchObject({ is_valid: true, key_id: keyId });
  });

  test("has the only record of its raw key, also once it is revoked", async () => {
    const { rawKey, keyId } = await importOne();
    const refused = alreadyExists("RAW_KEY_ALREADY_EXISTS", "raw_key");
    expectRefused(await create({ raw_key: rawKey }), refused);
    await revoke(rest, keyId);
    expectRefused(await create({ raw_key: rawKey, actor_id: "another" }), refused);
    expect(await verify(rest, rawKey)).toMatchObject({ error_code: "VERIFICATION_ERROR_REVOKED" });
    succeeded(await rest("DELETE", `${paths.imported}/${keyId}`));
    succeeded(await create({ raw_key: rawKey }));
  });

  test("is not imported twice, alone or in a batch, and a retry returns it", async () => {
    const rawKey = newRawKey();
    const hash = hashOf(rawKey);
    const request_id = newRawKey();
    const first = succeeded(await create({ ...hash, request_id, adopt_before_time: inHours(1) }));
    const again = { ...hash, request_id, adopt_before_time: first.adopt_before_time };
    expect(succeeded(await create(again))).toEqual(first);
    expectRefused(await create(hash), alreadyExists("RAW_KEY_ALREADY_EXISTS", "raw_key_hash"));
    for (const other of [
      { ...again, adopt_before_time: inHours(5) },
      { ...again, ...hashOf(newRawKey()) },
      { request_id, raw_key: rawKey },
    ])
      expectRefused(await create(other), alreadyExists("REQUEST_ID_REUSED", "request_id"));
    const [a, b] = [newRawKey(), newRawKey()];
    const requests = [hash, hashOf(a), hashOf(a), { raw_key: b }].map((one) => ({ ...KEY, ...one }));
    const { results } = succeeded(await rest("POST", `${paths.imported}:batchCreate`, { requests }));
    const code = "BATCH_CREATE_IMPORTED_API_KEYS_ERROR_ALREADY_EXISTS";
    expect(results).toMatchObject([{ error_code: code }, { imported_api_key: {} }, { error_code: code }, {}]);
    expect(results[0].error_message).toMatch(/^raw_key_hash: .* is already imported/);
    expect(await verify(rest, a)).toMatchObject({ key_id: results[1].imported_api_key.key_id });
  });
});

test("a hash in a format that was not in use yields to a key that was imported by the raw key itself", async () => {
  const native = await importKey(rest);
  for (const hash of [sha256Of(native.rawKey, newRawKey()), scryptOf(native.rawKey)]) {
    const { keyId } = await importHashed(rest, {}, native.rawKey, hash);
    expect(await verify(rest, native.rawKey)).toMatchObject({ key_id: native.keyId });
    expect(succeeded(await rest("GET", `${paths.imported}/${keyId}`)).hash_algorithm).toBeDefined();
  }
});

test("too many slow hashes are OVERLOADED, INTERNAL in a batch, and lock nobody out", async () => {
  const rawKey = newRawKey();
  const { keyId } = await importHashed(rest, {}, rawKey, scryptOf(rawKey, 20, 13));
  const native = await importKey(rest);
  const wrong = (index: number) => `${rawKey}-${index}`;
  const flood = Array.from({ length: 120 }, (_, index) =>
    rest("POST", `${paths.keys}:verify`, { credential: wrong(index) }),
  );
  const requests = [native.rawKey, ...[1, 2, 3].map((index) => wrong(index + 1_000)), newRawKey()];
  const { results } = succeeded(
    await rest("POST", `${paths.keys}:batchVerify`, { requests: requests.map((credential) => ({ credential })) }),
  );
  const codes = results.map(({ error_code }: Json) => error_code?.replace("VERIFICATION_ERROR_", ""));
  expect([codes[0], codes[4]]).toEqual([undefined, "NOT_FOUND"]);
  const answers = await Promise.all(flood);
  const refused = answers.filter(({ status }) => status !== 200);
  expect(refused.length).toBeGreaterThan(10);
  for (const answer of refused) {
    expectRefused(answer, { code: 503, status: "UNAVAILABLE", reason: "OVERLOADED" });
    expect(answer.headers.get("retry-after")).toBe("1");
  }
  for (const { body } of answers.filter(({ status }) => status === 200))
    expect(body).toMatchObject({ error_code: "VERIFICATION_ERROR_NOT_FOUND" });
  expect(codes.slice(1, 4).every((code: string) => code === "INTERNAL" || code === "NOT_FOUND")).toBe(true);
  expect(await verify(rest, rawKey)).toMatchObject({ is_valid: true, key_id: keyId });
});

test("no verdict is reached while the hash formats cannot be read", async () => {
  const { rawKey, keyId } = await importHashed(rest);
  const { rawKey: native } = await importKey(rest);
  await suite.sql`ALTER TABLE hash_schemes RENAME TO hash_schemes_renamed`;
  // Notifies the server of a change.
  await suite.sql`UPDATE hash_schemes_renamed SET slot = slot`;
  const statusOf = async (credential: string) => (await rest("POST", `${paths.keys}:verify`, { credential })).status;
  await expect.poll(() => statusOf(newRawKey())).toBe(500);
  expect(await statusOf(rawKey)).toBe(500);
  expect(await verify(rest, native)).toMatchObject({ is_valid: true });
  expect((await create({ raw_key: newRawKey() })).status).toBe(500);
  await suite.sql`ALTER TABLE hash_schemes_renamed RENAME TO hash_schemes`;
  expect(await verify(rest, rawKey)).toMatchObject({ is_valid: true, key_id: keyId });
});

test("a batch imports hashes of many kinds beside raw keys", async () => {
  const rawKeys = Array.from({ length: 240 }, newRawKey);
  const ways = [
    (raw: string) => ({ raw_key: raw }),
    (raw: string) => sha256Of(raw, "p:"),
    (raw: string) => sha256Of(raw),
  ];
  const requests = rawKeys.map((raw, index) => ({ ...KEY, ...ways[index % 3]?.(raw) }));
  const { success_count } = succeeded(await rest("POST", `${paths.imported}:batchCreate`, { requests }));
  expect(success_count).toBe(240);
  const body = { requests: rawKeys.map((credential) => ({ credential })) };
  const { results } = succeeded(await rest("POST", `${paths.keys}:batchVerify`, body));
  expect(results.filter(({ is_valid }: Json) => !is_valid)).toEqual([]);
});

test("two keys with one prefix in a batch: the first is imported", async () => {
  const start = newRawKey();
  const requests = ["-1", "-2"].map((end) => ({ ...KEY, ...scryptOf(start + end) }));
  const { results } = succeeded(await rest("POST", `${paths.imported}:batchCreate`, { requests }));
  expect(results[0].imported_api_key).toBeDefined();
  expect(results[1].error_message).toMatch(/^lookup_prefix: belongs to another key that is not adopted/);
});

const [HASH, SLOW] = [sha256Of("x").raw_key_hash, scryptOf("0123456789012345678901234567").raw_key_hash];

test.each(
  table<readonly [what: string, body: Json, ...fields: string[]]>([
    ["neither a raw key nor a hash", {}, "raw_key"],
    ["an empty raw key", { raw_key: "" }, "raw_key"],
    ["both", { raw_key: newRawKey(), raw_key_hash: HASH }, "raw_key"],
    ["an empty hash", { raw_key_hash: {} }, "raw_key_hash"],
    ["no encoding", { raw_key_hash: { ...HASH, encoding: undefined } }, "raw_key_hash.encoding"],
    ["another encoding", { raw_key_hash: { ...HASH, encoding: "TEXT_ENCODING_BASE64" } }, "raw_key_hash.value"],
    ["another algorithm", { raw_key_hash: { ...HASH, algorithm: "HASH_ALGORITHM_SHA512" } }, "raw_key_hash.value"],
    ["a slow algorithm", { raw_key_hash: { ...HASH, algorithm: "HASH_ALGORITHM_BCRYPT" } }, "raw_key_hash.algorithm"],
    ["an unknown HMAC key", { ...hmacOf("x", "of-no-key", "k") }, "raw_key_hash.hmac_key_id"],
    ["a lookup_prefix with a fast hash", { raw_key_hash: HASH, lookup_prefix: "0123456" }, "lookup_prefix"],
    ["no lookup_prefix with a slow hash", { raw_key_hash: SLOW }, "lookup_prefix"],
    ["a short lookup_prefix", { raw_key_hash: SLOW, lookup_prefix: "01234" }, "lookup_prefix"],
    ["the prefix of Keyhold's own secrets", { raw_key_hash: SLOW, lookup_prefix: "kh_v1_abc" }, "lookup_prefix"],
    ["lookup_prefix with a raw key", { raw_key: newRawKey(), lookup_prefix: "0123456" }, "lookup_prefix"],
    ["adopt_before_time with a raw key", { raw_key: newRawKey(), adopt_before_time: inHours(1) }, "adopt_before_time"],
    ["adopt_before_time in the past", { raw_key_hash: HASH, adopt_before_time: inHours(-1) }, "adopt_before_time"],
    ["adopt_before_time too late", { raw_key_hash: HASH, adopt_before_time: inHours(90_000) }, "adopt_before_time"],
    [
      "several invalid fields",
      { raw_key_hash: { ...HASH, value: "zz" }, lookup_prefix: "0123456", adopt_before_time: inHours(-1), ttl: "x" },
      ...["raw_key_hash.value", "lookup_prefix", "adopt_before_time", "ttl"],
    ],
  ]),
)("%s is refused by field", async (_, body, ...fields) => {
  expectRefused(await create(body), invalid(...fields));
});

describe("an HMAC key", () => {
  const HMAC = { hmac_key_id: "k", key: "the key of another system", encoding: "TEXT_ENCODING_UTF8" };
  const createKey = (more: Json = {}) => rest("POST", paths.hmacKeys, { ...HMAC, ...more });

  test("is created, listed without its secret, used and deleted", async () => {
    const made = succeeded(await createKey());
    expect(made).toEqual({ hmac_key_id: "k", create_time: time, created_by: "none:anonymous", not_adopted_count: 0 });
    expect(succeeded(await createKey())).toEqual(made);
    expect(
      succeeded(await createKey({ key: Buffer.from(HMAC.key).toString("hex"), encoding: "TEXT_ENCODING_HEX" })),
    ).toEqual(made);
    expectRefused(await createKey({ key: "another" }), alreadyExists("HMAC_KEY_ALREADY_EXISTS", "hmac_key_id"));
    const rawKey = newRawKey();
    const { keyId } = await importHashed(rest, {}, rawKey, hmacOf(rawKey, "k", HMAC.key));
    expect(succeeded(await rest("GET", paths.hmacKeys)).hmac_keys).toEqual([{ ...made, not_adopted_count: 1 }]);
    expect((await rest("DELETE", `${paths.hmacKeys}/k`)).status).toBe(409);
    expect(await verify(rest, rawKey)).toMatchObject({ key_id: keyId });
    await adopted(rest, keyId);
    expect(succeeded(await rest("DELETE", `${paths.hmacKeys}/k`))).toEqual({});
    expect((await rest("DELETE", `${paths.hmacKeys}/k`)).status).toBe(404);
  });

  test.each(
    table<readonly [what: string, change: Json, field: string]>([
      ["no id", { hmac_key_id: "" }, "hmac_key_id"],
      ["an id with a slash", { hmac_key_id: "a/b" }, "hmac_key_id"],
      ["a long id", { hmac_key_id: "a".repeat(65) }, "hmac_key_id"],
      ["no key", { key: "" }, "key"],
      ["no encoding", { encoding: undefined }, "encoding"],
      ["text that is no hexadecimal", { encoding: "TEXT_ENCODING_HEX" }, "key"],
      ["too many bytes", { key: "k".repeat(1025) }, "key"],
    ]),
  )("with %s is refused", async (_, change, field) => {
    expectRefused(await createKey(change), invalid(field));
  });
});
