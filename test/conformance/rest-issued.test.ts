import { describe, expect, test } from "vitest";
import {
  between,
  expectRefused,
  ISSUED_SECRET,
  invalid,
  RFC_3339_UTC,
  succeeded,
  table,
  UUID_V7,
  useService,
} from "../support/conformance.ts";
import { issue, paths } from "../support/rest.ts";

const suite = useService();
const { rest } = suite;
const time = expect.stringMatching(RFC_3339_UTC);

describe("an issued key", () => {
  test("requires only a name and an actor, and its record omits fields without a value", async () => {
    const body = succeeded(await rest("POST", paths.issued, { name: "ci", actor_id: "user_1" }));
    expect(body).toEqual({
      secret: expect.stringMatching(ISSUED_SECRET),
      issued_api_key: {
        key_id: expect.stringMatching(UUID_V7),
        name: "ci",
        actor_id: "user_1",
        scopes: [],
        status: "KEY_STATUS_ACTIVE",
        metadata: {},
        create_time: time,
        update_time: time,
        hint: `kh_v1_…${body.secret.slice(-4)}`,
        created_by: "none:anonymous",
        restricted_to_actor_ids: [],
        previous_secrets: [],
        rate_limits: [],
        quotas: [],
      },
    });
    expect(body.issued_api_key.update_time).toBe(body.issued_api_key.create_time);
  });

  test("has the fields of the request", async () => {
    const metadata = { team: "core", empty: "", "a b/ü": "\u{1f511}" };
    const { record } = await issue(rest, { name: "n", actor_id: "a", scopes: ["b:read", "a"], ttl: "24h", metadata });
    expect(record).toMatchObject({ name: "n", actor_id: "a", scopes: ["b:read", "a"], metadata, expire_time: time });
    expect(record.metadata).toEqual(metadata);
    expect(between(record.create_time, record.expire_time)).toBe(24 * 3_600_000);
  });

  test("accepts a request in lowerCamelCase and is returned in snake_case", async () => {
    const { record } = await issue(rest, { actor_id: undefined, actorId: "camel", requestId: "camel-1" });
    expect(record).toMatchObject({ actor_id: "camel" });
    expect(Object.keys(record).filter((name) => /[A-Z]/.test(name))).toEqual([]);
  });

  test("is read back unchanged", async () => {
    const { keyId, record } = await issue(rest, { scopes: ["x"], ttl: "1h", metadata: { k: "v" } });
    expect(succeeded(await rest("GET", `${paths.issued}/${keyId}`))).toEqual(record);
    expect(succeeded(await rest("GET", `${paths.issued}/${keyId.toUpperCase()}`))).toEqual(record);
  });

  test("has its secret in no other response, and a hash of it in none", async () => {
    const { keyId, secret } = await issue(rest, { actor_id: "shown" });
    const answers = [
      await rest("GET", `${paths.issued}/${keyId}`),
      await rest("GET", `${paths.issued}?page_size=1000`),
      await rest("PATCH", `${paths.issued}/${keyId}`, { name: "other" }),
      await rest("POST", `${paths.keys}:verify`, { credential: secret }),
      await rest("POST", `${paths.keys}/${keyId}:revoke`, {}),
    ];
    const [row] = await suite.sql`SELECT digest FROM api_keys WHERE key_id = ${keyId}`;
    for (const { status, text } of answers) {
      expect(status).toBe(200);
      expect(text).not.toContain(secret.slice(6, -6));
      expect(text).not.toContain(row?.digest.toString("hex"));
      expect(text).not.toMatch(/"(?:secret|digest|hash|raw_key)"/);
    }
  });

  test("has a unique secret and a unique identifier that increases with time", async () => {
    const made = [];
    for (let i = 0; i < 20; i++) made.push(await issue(rest));
    const ids = made.map(({ keyId }) => keyId);
    // Identifiers of the same millisecond have no order.
    const times = ids.map((id) => id.slice(0, 13));
    expect([...times].sort()).toEqual(times);
    expect(new Set(made.map(({ secret }) => secret)).size).toBe(20);
  });

  test("has Cache-Control: no-store on responses with a secret", async () => {
    const created = await rest("POST", paths.issued, { name: "n", actor_id: "a" });
    const { key_id } = created.body.issued_api_key;
    const rotated = await rest("POST", `${paths.issued}/${key_id}:rotate`, {});
    expect([created, rotated].map(({ headers }) => headers.get("cache-control"))).toEqual(["no-store", "no-store"]);
  });
});

test.each(table(["0.999s", "10y1s", "-1h", "", "1 h", 3600]))("the ttl %j is refused", async (ttl) => {
  expectRefused(await rest("POST", paths.issued, { name: "n", actor_id: "a", ttl }), invalid("ttl"));
});
