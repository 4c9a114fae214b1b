import { beforeAll, describe, expect, test } from "vitest";
import { formatSecret, parseSecretPrefix } from "../../src/credential/format.ts";
import {
  alreadyExists,
  between,
  derive,
  expectRefused,
  importKey,
  invalid,
  newRawKey,
  notFound,
  RFC_3339_UTC,
  revoke,
  succeeded,
  table,
  UUID_V7,
  useService,
} from "../support/conformance.ts";
import { issue, paths, verify } from "../support/rest.ts";

const suite = useService();
const { rest } = suite;
const time = expect.stringMatching(RFC_3339_UTC);

describe("an imported key", () => {
  test("requires only a raw key, a name and an actor, and its record omits fields without a value", async () => {
    const rawKey = "legacy-0123456789abcdef";
    const record = succeeded(await rest("POST", paths.imported, { raw_key: rawKey, name: "old", actor_id: "user_1" }));
    expect(record).toEqual({
      key_id: expect.stringMatching(UUID_V7),
      name: "old",
      actor_id: "user_1",
      scopes: [],
      status: "KEY_STATUS_ACTIVE",
      metadata: {},
      create_time: time,
      update_time: time,
      hint: "…cdef",
      created_by: "none:anonymous",
      rate_limits: [],
      quotas: [],
    });
    expect(record.update_time).toBe(record.create_time);
  });

  test("has the fields of the request", async () => {
    const given = { name: "n", actor_id: "a", scopes: ["b:read", "a"], metadata: { team: "core" } };
    const { record } = await importKey(rest, { ...given, ttl: "1h30m" });
    expect(record).toMatchObject({ ...given, expire_time: time });
    expect(between(record.create_time, record.expire_time)).toBe(1.5 * 3_600_000);
  });

  test("accepts a request in lowerCamelCase", async () => {
    const body = { rawKey: newRawKey(), name: "n", actorId: "camel", requestId: "camel-1" };
    expect(succeeded(await rest("POST", paths.imported, body))).toMatchObject({ actor_id: "camel" });
  });

  test("is read back unchanged", async () => {
    const { keyId, record } = await importKey(rest, { scopes: ["x"], ttl: "1h", metadata: { k: "v" } });
    expect(succeeded(await rest("GET", `${paths.imported}/${keyId}`))).toEqual(record);
  });

  test("verifies by its raw key, with the fields of its record", async () => {
    const { keyId, rawKey, record } = await importKey(rest, { scopes: ["x"], metadata: { k: "v" } });
    expect(await verify(rest, rawKey)).toEqual({
      is_valid: true,
      key_id: keyId,
      actor_id: record.actor_id,
      scopes: ["x"],
      metadata: { k: "v" },
      status: "KEY_STATUS_ACTIVE",
      issuer: "keyhold",
      credential_type: "CREDENTIAL_TYPE_IMPORTED_API_KEY",
      missing_scopes: [],
      limits: [],
    });
  });

  test("has neither its raw key nor a hash of it in any response", async () => {
    const { keyId, rawKey } = await importKey(rest);
    const answers = [
      await rest("GET", `${paths.imported}/${keyId}`),
      await rest("GET", `${paths.imported}?page_size=1000`),
      await rest("PATCH", `${paths.imported}/${keyId}`, { name: "other" }),
      await rest("POST", `${paths.keys}:verify`, { credential: rawKey }),
      await rest("POST", `${paths.keys}/${keyId}:revoke`, {}),
    ];
    const [row] = await suite.sql`SELECT digest FROM api_keys WHERE key_id = ${keyId}`;
    for (const { status, text } of answers) {
      expect(status).toBe(200);
      expect(text).not.toContain(rawKey);
      expect(text).not.toContain(row?.digest.toString("hex"));
      expect(text).not.toMatch(/"(?:secret|digest|hash|raw_key|rotate_time)"/);
    }
  });

  test("shares one space of identifiers with issued keys", async () => {
    const ids = [(await issue(rest)).keyId, (await importKey(rest)).keyId, (await issue(rest)).keyId];
    expect([...ids].sort()).toEqual(ids);
  });

  test("cannot be rotated, since the server does not generate its secret", async () => {
    const { keyId } = await importKey(rest);
    expectRefused(await rest("POST", `${paths.issued}/${keyId}:rotate`, {}), notFound(keyId));
  });
});

describe("a raw key that exists", () => {
  const again = (rawKey: string) => rest("POST", paths.imported, { raw_key: rawKey, name: "again", actor_id: "other" });

  test("is 409", async () => {
    const { rawKey } = await importKey(rest);
    expectRefused(await again(rawKey), alreadyExists("RAW_KEY_ALREADY_EXISTS", "raw_key"));
  });

  test("is 409 when its key is revoked: revocation is final", async () => {
    const { rawKey, keyId } = await importKey(rest);
    await revoke(rest, keyId);
    expectRefused(await again(rawKey), alreadyExists("RAW_KEY_ALREADY_EXISTS", "raw_key"));
    expect(await verify(rest, rawKey)).toMatchObject({ is_valid: false });
  });

  test("is case-sensitive", async () => {
    const { rawKey, keyId } = await importKey(rest);
    expect(succeeded(await again(rawKey.toUpperCase())).key_id).not.toBe(keyId);
  });
});

describe("a raw key in a format of Keyhold is refused:", () => {
  let ours: Record<string, string>;
  beforeAll(async () => {
    const { secret } = await issue(rest);
    const jwt = (await derive(rest, secret)).token;
    const macaroon = (await derive(rest, secret, { algorithm: "TOKEN_ALGORITHM_MACAROON" })).token;
    ours = {
      "an issued secret": secret,
      "an issued secret with a character changed": secret.replace(/.$/, (last: string) => (last === "0" ? "1" : "0")),
      "the prefix alone": "kh_v1_",
      "a secret with another prefix and a correct checksum": formatSecret({
        prefix: parseSecretPrefix("other"),
        payload: new Uint8Array(64),
      }),
      "a JWT of this server": jwt,
      "a JWT of another service": FOREIGN_JWT,
      "a JWT without a signature": `${jwt.slice(0, jwt.lastIndexOf("."))}.`,
      "a macaroon": macaroon,
    };
  });

  /** `alg` HS256, from RFC 7515 §A.1. */
  const FOREIGN_JWT =
    "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UifQ.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
  const NAMES = [
    "an issued secret",
    "an issued secret with a character changed",
    "the prefix alone",
    "a secret with another prefix and a correct checksum",
    "a JWT of this server",
    "a JWT of another service",
    "a JWT without a signature",
    "a macaroon",
  ];

  test.each(table(NAMES))("%s", async (name) => {
    const answer = await rest("POST", paths.imported, { raw_key: ours[name], name: "n", actor_id: "a" });
    expectRefused(answer, invalid("raw_key"));
  });

  test("all formats are covered", () => expect(NAMES).toEqual(Object.keys(ours)));

  const FOREIGN = ["kh_v2_abc", "KH_v1_abc", "sk_live_0123456789abcdefghij", "a.b.c", "AgEBAA", "eyJh.eyJh.x y"];

  test.each(table(FOREIGN))("%j is in no such format and is accepted", async (rawKey) => {
    expect((await importKey(rest, { raw_key: rawKey, allow_weak: true })).record.status).toBe("KEY_STATUS_ACTIVE");
    expect(await verify(rest, rawKey)).toMatchObject({ is_valid: true });
  });
});

describe("DELETE", () => {
  test("returns 200 with an empty object and removes the record", async () => {
    const { keyId, rawKey } = await importKey(rest);
    expect(succeeded(await rest("DELETE", `${paths.imported}/${keyId}`))).toEqual({});
    expectRefused(await rest("GET", `${paths.imported}/${keyId}`), notFound(keyId));
    const { imported_api_keys } = succeeded(await rest("GET", `${paths.imported}?page_size=1000`));
    expect(imported_api_keys.map(({ key_id }: { key_id: string }) => key_id)).not.toContain(keyId);
    expect(await verify(rest, rawKey)).toMatchObject({ is_valid: false, error_code: "VERIFICATION_ERROR_NOT_FOUND" });
  });

  test("is 404 the second time", async () => {
    const { keyId } = await importKey(rest);
    succeeded(await rest("DELETE", `${paths.imported}/${keyId}`));
    expectRefused(await rest("DELETE", `${paths.imported}/${keyId}`), notFound(keyId));
  });

  test("allows the same raw key to be imported again, as another key", async () => {
    const { keyId, rawKey } = await importKey(rest);
    await revoke(rest, keyId);
    succeeded(await rest("DELETE", `${paths.imported}/${keyId}`));
    const again = await importKey(rest, { raw_key: rawKey });
    expect(again.keyId).not.toBe(keyId);
    expect(await verify(rest, rawKey)).toMatchObject({ is_valid: true, key_id: again.keyId });
  });
});

const UNKNOWN = [
  ["GET", undefined],
  ["DELETE", undefined],
  ["PATCH", { name: "n" }],
] as const;

test.each(table(UNKNOWN))("%s of an imported key that is issued is 404", async (method, body) => {
  const { keyId, secret } = await issue(rest);
  expectRefused(await rest(method, `${paths.imported}/${keyId}`, body), notFound(keyId));
  expect(await verify(rest, secret)).toMatchObject({ is_valid: true });
});
