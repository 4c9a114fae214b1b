import { describe, expect, test } from "vitest";
import { newRawKey, succeeded, withQuery } from "../support/conformance.ts";
import { atOnce, tally, useTwoServers } from "../support/races.ts";
import { type Answer, type Json, paths, type RestClient, verify } from "../support/rest.ts";

const { suite, sides } = useTwoServers();

const ALREADY_EXISTS = "BATCH_CREATE_IMPORTED_API_KEYS_ERROR_ALREADY_EXISTS";

function importing(raw_key: string, fields: object = {}) {
  return { raw_key, name: "imported", actor_id: "actor_1", ...fields };
}

function batch(rest: RestClient, requests: readonly object[]) {
  return rest("POST", `${paths.imported}:batchCreate`, { requests });
}

async function ownedBy(actor: string): Promise<Json[]> {
  const path = withQuery(paths.imported, { page_size: "1000", filter: `actor_id="${actor}"` });
  return succeeded(await suite.rest("GET", path)).imported_api_keys;
}

function winner(answers: readonly Answer[]): Json {
  return answers.find(({ status }) => status === 200)?.body;
}

/** Returns the identifiers of successful batch items by the index of the raw key in `rawKeys`. */
function successes(answers: readonly Answer[], requests: readonly (readonly { raw_key: string }[])[]) {
  const found = new Map<string, string[]>();
  for (const [place, { body }] of answers.entries()) {
    // A batch without a successful item has its results in the details of its error.
    for (const { index, imported_api_key, error_code } of body.results ?? []) {
      const rawKey = requests[place]?.[index]?.raw_key ?? "";
      if (imported_api_key === undefined) expect(error_code).toBe(ALREADY_EXISTS);
      else found.set(rawKey, [...(found.get(rawKey) ?? []), imported_api_key.key_id]);
    }
  }
  return found;
}

describe.each(sides)("with %s", (name, rest) => {
  test("one of 40 concurrent imports of a raw key succeeds", async () => {
    const rawKey = newRawKey();
    const answers = await atOnce(40, (i) =>
      rest(i)("POST", paths.imported, importing(rawKey, { name: `import ${i}` })),
    );
    expect(tally(answers)).toEqual({ 200: 1, "409 RAW_KEY_ALREADY_EXISTS": 39 });
    const { key_id, name } = winner(answers);
    expect(await verify(rest(1), rawKey)).toMatchObject({ is_valid: true, key_id });
    expect(succeeded(await rest(0)("GET", `${paths.imported}/${key_id}`)).name).toBe(name);
  });

  test("a request sent 20 times concurrently imports one key", async () => {
    const request = importing(newRawKey(), { actor_id: `repeat ${name}`, request_id: newRawKey() });
    const answers = await atOnce(20, (i) => rest(i)("POST", paths.imported, request));
    expect(tally(answers)).toEqual({ 200: 20 });
    expect(new Set(answers.map(({ body }) => body.key_id)).size).toBe(1);
    expect(await ownedBy(request.actor_id)).toHaveLength(1);
  });

  test("a request sent 20 times concurrently issues one key and returns one secret", async () => {
    const request = { name: "issued", actor_id: "actor_1", request_id: newRawKey() };
    const answers = await atOnce(20, (i) => rest(i)("POST", paths.issued, request));
    expect(tally(answers)).toEqual({ 200: 20 });
    expect(new Set(answers.map(({ body }) => body.issued_api_key.key_id)).size).toBe(1);
    const secrets = answers.flatMap(({ body }) => body.secret ?? []);
    expect(secrets).toHaveLength(1);
    expect(await verify(rest(0), secrets[0])).toMatchObject({ is_valid: true });
  });

  test("one of 20 different concurrent requests with one request_id succeeds", async () => {
    const request_id = newRawKey();
    const answers = await atOnce(20, (i) =>
      rest(i)("POST", paths.issued, { name: `issued ${i}`, actor_id: "actor_1", request_id }),
    );
    expect(tally(answers)).toEqual({ 200: 1, "409 REQUEST_ID_REUSED": 19 });
  });

  test("overlapping batches of 1000 with duplicates agree with the stored keys", async () => {
    const actor_id = `batch ${name}`;
    const rawKeys = Array.from({ length: 1000 }, newRawKey);
    const forth = rawKeys.slice(0, 900).map((rawKey) => importing(rawKey, { actor_id }));
    const back = rawKeys.slice(100).map((rawKey) => importing(rawKey, { actor_id }));
    const requests = [
      [...forth, ...forth.slice(0, 100)],
      [...back.toReversed(), ...back.slice(0, 100)],
      [...forth.toReversed(), ...back.slice(800)],
      [...back, ...back.slice(800).toReversed()],
    ];
    const answers = await Promise.all(requests.map((items, i) => batch(rest(i), items)));
    expect(["200", "409 RAW_KEY_ALREADY_EXISTS"]).toEqual(expect.arrayContaining(Object.keys(tally(answers))));
    const imported = successes(answers, requests);
    expect([...imported.values()].filter((ids) => ids.length !== 1)).toEqual([]);
    const stored = (await ownedBy(actor_id)).map(({ key_id }) => key_id);
    expect([...imported.values()].flat().sort()).toEqual(stored.sort());
    expect(stored).toHaveLength(1000);
  });

  test("each raw key of single imports that race a batch is imported by one of them", async () => {
    const actor_id = `mixed ${name}`;
    const requests = Array.from({ length: 50 }, () => importing(newRawKey(), { actor_id }));
    const [batched, ...single] = await Promise.all([
      batch(rest(0), requests),
      ...requests.map((request, i) => rest(i)("POST", paths.imported, request)),
    ]);
    const outcomes = tally(single);
    const made = batched.status === 200 ? batched.body.success_count : 0;
    expect(outcomes["200"] ?? 0).toBe(50 - made);
    expect(outcomes["409 RAW_KEY_ALREADY_EXISTS"] ?? 0).toBe(made);
    expect(await ownedBy(actor_id)).toHaveLength(50);
  });

  test("alternating imports and deletions of one raw key leave as many keys as they report", async () => {
    const rawKey = newRawKey();
    const actor_id = `turns ${name}`;
    let ids = new Set<string>();
    let made = 0;
    for (let turn = 0; turn < 5; turn++) {
      const found = [...ids];
      const answers = await Promise.all([
        atOnce(6, (i) => rest(i)("POST", paths.imported, importing(rawKey, { actor_id }))),
        atOnce(6, (i) => rest(i)("DELETE", `${paths.imported}/${found[i % found.length] ?? crypto.randomUUID()}`)),
      ]);
      const [imports, deletions] = answers;
      expect(Object.keys(tally(imports)).filter((one) => !["200", "409 RAW_KEY_ALREADY_EXISTS"].includes(one))).toEqual(
        [],
      );
      expect(Object.keys(tally(deletions)).filter((one) => !["200", "404 API_KEY_NOT_FOUND"].includes(one))).toEqual(
        [],
      );
      made += (tally(imports)["200"] ?? 0) - (tally(deletions)["200"] ?? 0);
      const stored = await ownedBy(actor_id);
      expect(stored).toHaveLength(made);
      ids = new Set(stored.map(({ key_id }) => key_id));
      expect((await verify(rest(turn), rawKey)).is_valid).toBe(made === 1);
    }
  });
});
