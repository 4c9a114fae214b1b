import { beforeAll, describe, expect, test } from "vitest";
import { expectRefused, importKey, invalid, succeeded, table, useService, withQuery } from "../support/conformance.ts";
import { issue, type Json, paths } from "../support/rest.ts";

const suite = useService();
const { rest } = suite;

/** Number of keys of each kind in the database, without those that tests create. */
const SEEDED = 1005;

const KINDS = [
  ["issued", paths.issued, "issued_api_keys", async (fields: Json) => (await issue(rest, fields)).keyId],
  ["imported", paths.imported, "imported_api_keys", async (fields: Json) => (await importKey(rest, fields)).keyId],
] as const;

/** Creates keys that are older than any that a test creates; only their number matters. */
beforeAll(async () => {
  await suite.sql`
    INSERT INTO api_keys (key_id, kind, name, actor_id, scopes, metadata, hint, create_time, update_time, digest, digest_key_id)
    SELECT overlay(gen_random_uuid()::text placing lpad(to_hex(n), 12, '0') from 25)::uuid, kind, 'seeded', 'seeded', '{}', '{}', '',
      now(), now(), decode(md5(n::text || kind), 'hex'), 'none'
    FROM generate_series(1, ${SEEDED}) AS n, unnest(ARRAY['issued', 'imported']) AS kind`;
  await suite.sql`UPDATE api_keys SET key_id = ('00000000' || substr(key_id::text, 9))::uuid WHERE actor_id = 'seeded'`;
});

describe.each(table(KINDS))("the list of %s keys", (kind, path, member, make) => {
  const list = (query: Record<string, string>) => rest("GET", withQuery(path, query));
  const page = async (query: Record<string, string>) => {
    const { [member]: records, ...more } = succeeded(await list(query));
    return { ids: records.map(({ key_id }: Json) => key_id), token: more.next_page_token, more };
  };
  const own = (name: string) => ({ filter: `actor_id="${kind} ${name}"` });

  async function makeKeys(name: string, count: number): Promise<string[]> {
    const ids: string[] = [];
    for (let i = 0; i < count; i++) ids.unshift(await make({ actor_id: `${kind} ${name}` }));
    return ids;
  }

  test("is newest first, with whole records", async () => {
    const ids = await makeKeys("newest", 5);
    const body = succeeded(await list(own("newest")));
    expect(body[member].map(({ key_id }: Json) => key_id)).toEqual(ids);
    for (const record of body[member]) expect(succeeded(await rest("GET", `${path}/${record.key_id}`))).toEqual(record);
  });

  test("has all its members when it is empty", async () => {
    expect(succeeded(await list(own("nobody")))).toEqual({ [member]: [], next_page_token: "" });
  });

  test("has no keys of the other kind", async () => {
    const [id] = await makeKeys("kind", 1);
    const [other] = KINDS.filter(([name]) => name !== kind);
    const body = succeeded(await rest("GET", withQuery(other?.[1] ?? "", own("kind"))));
    expect(Object.values(body)).toEqual([[], ""]);
    expect((await page(own("kind"))).ids).toEqual([id]);
  });

  const SIZES = [
    [undefined, 50],
    ["0", 50],
    ["1", 1],
    ["7", 7],
    ["1000", 1000],
    ["1001", 1000],
    ["2147483647", 1000],
  ] as const;

  test.each(table(SIZES))("with page_size %s has %d keys a page", async (size, count) => {
    const { ids, token } = await page(size === undefined ? {} : { page_size: size });
    expect(ids.length).toBe(count);
    expect(token).toMatch(/^[\w-]+$/);
  });

  test.each(table(["-1", "-2147483648", "ten", "1.5", "99999999999", "", " 1", "0x10"]))(
    "with page_size %j is refused",
    async (size) => {
      expectRefused(await list({ page_size: size }), invalid("page_size"));
    },
  );

  test("has every key once over all pages, and an empty token on the last page", async () => {
    const ids = await makeKeys("pages", 7);
    const seen: string[] = [];
    const sizes: number[] = [];
    let token = "";
    do {
      const next = await page({ ...own("pages"), page_size: "3", ...(token === "" ? {} : { page_token: token }) });
      seen.push(...next.ids);
      sizes.push(next.ids.length);
      token = next.token;
    } while (token !== "");
    expect([seen, sizes]).toEqual([ids, [3, 3, 1]]);
  });

  test("ends when the last page is full", async () => {
    await makeKeys("full", 4);
    const first = await page({ ...own("full"), page_size: "2" });
    const last = await page({ ...own("full"), page_size: "2", page_token: first.token });
    expect([last.ids.length, last.more]).toEqual([2, { next_page_token: "" }]);
  });

  test("continues at the same key when keys are created meanwhile, also with another page size", async () => {
    const ids = await makeKeys("meanwhile", 6);
    const first = await page({ ...own("meanwhile"), page_size: "2" });
    await makeKeys("meanwhile", 2);
    const rest_ = await page({ ...own("meanwhile"), page_size: "100", page_token: first.token });
    expect([...first.ids, ...rest_.ids]).toEqual(ids);
  });

  test("accepts query names in lowerCamelCase", async () => {
    const first = succeeded(await rest("GET", `${path}?pageSize=2`));
    expect(first[member].length).toBe(2);
    const token = encodeURIComponent(first.next_page_token);
    const [second] = succeeded(await rest("GET", `${path}?pageSize=1&pageToken=${token}`))[member];
    expect(first[member].map(({ key_id }: Json) => key_id)).not.toContain(second.key_id);
  });

  const QUERIES = [
    ["a misspelt name", "page_sise=1", "page_sise"],
    ["order_by with another field", "order_by=update_time", "order_by"],
  ] as const;

  test.each(table(QUERIES))("is refused with %s", async (_, query, field) => {
    expectRefused(await rest("GET", `${path}?${query}`), invalid(field));
  });

  test("accepts a space as %20 or as +", async () => {
    const ids = await makeKeys("spaces", 1);
    const filter = encodeURIComponent(`actor_id="${kind} spaces" AND status=KEY_STATUS_ACTIVE`);
    for (const text of [filter, filter.replaceAll("%20", "+")]) {
      const body = succeeded(await rest("GET", `${path}?page_size=10&filter=${text}`));
      expect(body[member].map(({ key_id }: Json) => key_id)).toEqual(ids);
    }
  });

  describe("page_token", () => {
    const token = async () => (await page({ page_size: "1" })).token;

    test("is opaque: it contains no identifier", async () => {
      const { ids, token } = await page({ page_size: "1" });
      const [id] = ids;
      expect(token).not.toContain(id);
      expect(token).not.toContain(id.replaceAll("-", ""));
    });

    test("is refused with any of its characters changed", async () => {
      const good = await token();
      const changed = [...good].map(
        (character, at) => good.slice(0, at) + (character === "A" ? "B" : "A") + good.slice(at + 1),
      );
      expect(changed.length).toBe(44);
      for (const page_token of changed) expectRefused(await list({ page_token }), invalid("page_token"));
    });

    const WRONG: readonly (readonly [what: string, change: (token: string) => string])[] = [
      ["that is invalid", () => "next"],
      ["cut short", (good) => good.slice(0, -1)],
      ["with a suffix", (good) => `${good}A`],
      ["with padding", (good) => `${good}=`],
      ["twice in a row", (good) => good + good],
      ["that is an identifier", () => "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10"],
    ];

    test.each(table(WRONG))("%s is refused", async (_, change) => {
      expectRefused(await list({ page_token: change(await token()) }), invalid("page_token"));
    });

    test("is refused with another filter, without a filter, and in the other list", async () => {
      const { token } = await page({ page_size: "1", filter: 'actor_id="seeded"' });
      expect((await page({ page_size: "1", page_token: token, filter: 'actor_id="seeded"' })).ids.length).toBe(1);
      const [other] = KINDS.filter(([name]) => name !== kind);
      const answers = await Promise.all([
        list({ page_token: token, filter: 'actor_id="seeded" AND status=KEY_STATUS_ACTIVE' }),
        list({ page_token: token }),
        rest("GET", withQuery(other?.[1] ?? "", { page_token: token, filter: 'actor_id="seeded"' })),
      ]);
      for (const answer of answers) expectRefused(answer, invalid("page_token"));
    });
  });
});

describe("the list of both kinds", () => {
  const list = (query: Record<string, string>) => rest("GET", withQuery(paths.keys, query));

  test("merges them newest first, with whole records, as each is read, over any number of pages", async () => {
    const ids: string[] = [];
    for (let round = 0; round < 4; round++) {
      for (const [kind, , , make] of KINDS) ids.unshift(`${kind} ${await make({ actor_id: "both kinds" })}`);
    }
    const found: string[] = [];
    let token = "";
    do {
      const query = {
        filter: 'actor_id="both kinds" AND create_time <= now() + "1h"',
        page_size: "3",
        page_token: token,
      };
      const { api_keys, next_page_token } = succeeded(await list(query));
      for (const { kind, ...key } of api_keys) {
        const [name = "", path = ""] = KINDS.find(([name]) => `KEY_KIND_${name.toUpperCase()}` === kind) ?? [];
        expect(key).toMatchObject(succeeded(await rest("GET", `${path}/${key.key_id}`)));
        expect(succeeded(await rest("GET", `${paths.keys}/${key.key_id}`))).toEqual({ kind, ...key });
        found.push(`${name} ${key.key_id}`);
      }
      token = next_page_token;
    } while (token !== "");
    expect(found).toEqual(ids);
    const imported = succeeded(await list({ filter: 'actor_id="both kinds" kind=KEY_KIND_IMPORTED' })).api_keys;
    expect(imported.map((key: Json) => `imported ${key.key_id}`)).toEqual(
      ids.filter((id) => id.startsWith("imported")),
    );
  });

  test("refuses a page token of the list of one kind, and the reverse", async () => {
    const { next_page_token: both } = succeeded(await list({ page_size: "1" }));
    const { next_page_token: issued } = succeeded(await rest("GET", withQuery(paths.issued, { page_size: "1" })));
    expectRefused(await list({ page_size: "1", page_token: issued }), invalid("page_token"));
    const other = await rest("GET", withQuery(paths.issued, { page_size: "1", page_token: both }));
    expectRefused(other, invalid("page_token"));
  });
});
