import { beforeAll, describe, expect, test } from "vitest";
import {
  derive,
  type Expected,
  expectRefused,
  importKey,
  invalid,
  newRawKey,
  notFound,
  succeeded,
  table,
  withQuery,
} from "../support/conformance.ts";
import { useGuardedService } from "../support/guarded.ts";
import { scryptOf, sha256Of } from "../support/hashed-keys.ts";
import { type Answer, issue, type Json, paths, type RestClient, verify } from "../support/rest.ts";
import { storedKeys } from "../support/stored-keys.ts";

const suite = useGuardedService();
const { rest } = suite;

type Key = Awaited<ReturnType<typeof issue>>;

const OWN = { name: "n", actor_id: "own" };
const adminToken = (actors: readonly string[], fields: Record<string, unknown> = {}) =>
  issue(rest, { ...OWN, scopes: ["keyhold:admin"], restricted_to_actor_ids: actors, ...fields });

/** The token of the caller, which may do everything to the keys of the actor "own". */
let token: Key;
let caller: RestClient;
/** An admin token of the same actor that is not restricted, and one that is restricted to others too. */
let unrestricted: Key;
let wider: Key;
/** A key of each actor without Keyhold scopes. */
let plain: Key;
let foreign: Key;
let foreignRaw: Awaited<ReturnType<typeof importKey>>;
beforeAll(async () => {
  token = await adminToken(["own"]);
  caller = suite.as(token.secret);
  unrestricted = await adminToken([]);
  wider = await adminToken(["own", "foreign"]);
  plain = await issue(rest, OWN);
  foreign = await issue(rest, { name: "n", actor_id: "foreign" });
  foreignRaw = await importKey(rest, { actor_id: "foreign" });
});

const notPermitted = (metadata: Record<string, string>): Expected => ({
  ...{ code: 403, status: "PERMISSION_DENIED", reason: "CALLER_NOT_PERMITTED" },
  metadata,
});
const NOT_CONFINED = notPermitted({ scope: "keyhold:admin" });
const NOT_ITS_ACTOR = notPermitted({ field: "actor_id" });
const taken = (reason: string, field: string): Expected => ({
  ...{ code: 409, status: "ALREADY_EXISTS", reason, fields: [field] },
});

const post = (path: string, body: unknown = {}) => caller("POST", path, body);
const patch = ({ keyId }: Key, body: unknown, query: Record<string, string> = {}) =>
  caller("PATCH", withQuery(`${paths.issued}/${keyId}`, query), body);
const create = (fields: Record<string, unknown>) => post(paths.issued, { ...OWN, ...fields });
const admin = ["keyhold:admin"];

/** Attempts of a restricted caller to get more, and how each is refused. */
const ATTEMPTS: readonly [string, () => Promise<Answer>, Expected | (() => Expected)][] = [
  [
    "name restricted_to_actor_ids in the mask of an update",
    () => patch(token, { restricted_to_actor_ids: ["own", "foreign"] }, { update_mask: "restricted_to_actor_ids" }),
    invalid("update_mask"),
  ],
  [
    "send other restricted_to_actor_ids in an update",
    () => patch(token, { name: "n", restricted_to_actor_ids: ["own", "foreign"] }),
    invalid("issued_api_key.restricted_to_actor_ids"),
  ],
  [
    "send other restricted_to_actor_ids with the mask *",
    () => patch(token, { ...OWN, restricted_to_actor_ids: ["foreign"] }, { update_mask: "*" }),
    invalid("issued_api_key.restricted_to_actor_ids"),
  ],
  [
    "move its token to another actor",
    () => patch(token, { name: "n", actor_id: "foreign" }),
    invalid("issued_api_key.actor_id"),
  ],
  ["give a Keyhold scope to a key without restriction", () => patch(plain, { scopes: admin }), NOT_CONFINED],
  ["take the scopes of an unrestricted token", () => patch(unrestricted, { scopes: [] }), NOT_CONFINED],
  ["rename an unrestricted token", () => patch(unrestricted, { name: "mine" }), NOT_CONFINED],
  ...["rotate", "revoke", "disable", "enable"].map((verb): (typeof ATTEMPTS)[number] => [
    `${verb} an unrestricted token`,
    () => post(`${paths.issued}/${unrestricted.keyId}:${verb}`),
    NOT_CONFINED,
  ]),
  ["rotate a wider token", () => post(`${paths.issued}/${wider.keyId}:rotate`), () => notFound(wider.keyId)],
  ["read a wider token, which names others", () => get(wider), () => notFound(wider.keyId)],
  ["issue a token without restriction", () => create({ scopes: admin }), NOT_CONFINED],
  [
    "issue a token for more actors",
    () => create({ scopes: admin, restricted_to_actor_ids: ["own", "foreign"] }),
    NOT_CONFINED,
  ],
  [
    "issue a token for other actors",
    () => create({ scopes: admin, restricted_to_actor_ids: ["foreign"] }),
    NOT_CONFINED,
  ],
  [
    "issue a token to another actor",
    () => create({ scopes: admin, actor_id: "foreign", restricted_to_actor_ids: ["own"] }),
    NOT_ITS_ACTOR,
  ],
  ["issue a key to another actor", () => create({ actor_id: "foreign" }), NOT_ITS_ACTOR],
  [
    "import a key with a Keyhold scope",
    () => post(paths.imported, { ...OWN, raw_key: newRawKey(), scopes: admin }),
    NOT_CONFINED,
  ],
  [
    "import a key for another actor",
    () => post(paths.imported, { ...OWN, actor_id: "foreign", raw_key: newRawKey() }),
    NOT_ITS_ACTOR,
  ],
  [
    "import the raw key of another actor",
    () => post(paths.imported, { ...OWN, raw_key: foreignRaw.rawKey }),
    taken("RAW_KEY_ALREADY_EXISTS", "raw_key"),
  ],
  [
    "import a hash with the lookup prefix of another actor's key",
    () => post(paths.imported, { ...OWN, ...scryptOf(foreignRaw.rawKey) }),
    notPermitted({ field: "raw_key_hash.phc" }),
  ],
  [
    "import a hash with any other lookup prefix",
    () => post(paths.imported, { ...OWN, ...scryptOf(newRawKey()) }),
    notPermitted({ field: "raw_key_hash.phc" }),
  ],
  ["get a foreign key", () => get(foreign), () => notFound(foreign.keyId)],
];

const get = ({ keyId }: Key) => caller("GET", `${paths.issued}/${keyId}`);

describe("a restricted caller may not", () => {
  test.each(table(ATTEMPTS))("%s", async (_, attempt, expected) => {
    const before = await storedKeys(suite.sql);
    const answer = await attempt();
    expectRefused(answer, typeof expected === "function" ? expected() : expected);
    expect(answer.text).not.toContain("foreign");
    expect(await storedKeys(suite.sql)).toEqual(before);
  });

  test("import a key with a Keyhold scope, or for another actor, in a batch", async () => {
    const { status, body } = await post(`${paths.imported}:batchCreate`, {
      requests: [
        { ...OWN, raw_key: newRawKey(), scopes: admin },
        { ...OWN, actor_id: "foreign", raw_key: newRawKey() },
        { ...OWN, raw_key: newRawKey() },
      ],
    });
    expect({ status, ...body }).toMatchObject({ status: 200, success_count: 1, failure_count: 2 });
    expect(body.results.map((result: Record<string, string>) => result.error_message)).toEqual([
      "a key with the scope keyhold:admin must list in restricted_to_actor_ids only actors to which the caller is restricted",
      "actor_id must be one of the actors to which the caller is restricted",
      undefined,
    ]);
  });

  test("use up hash formats by imports that are rejected, or learn which others use", async () => {
    const formats = (actor_id: string, count: number, from = 0) =>
      Array.from({ length: count }, (_, index) => ({
        ...{ name: "n", actor_id },
        ...sha256Of(newRawKey(), `pepper ${from + index}`),
      }));
    const batch = (client: RestClient, requests: unknown[]) =>
      client("POST", `${paths.imported}:batchCreate`, { requests });
    expect((await batch(caller, formats("foreign", 20))).status).toBe(403);
    expect(await suite.sql`SELECT FROM hash_schemes WHERE slot <= 8`).toHaveLength(0);
    expect(succeeded(await batch(rest, formats("foreign", 8))).success_count).toBe(8);
    const { body } = await batch(caller, formats("own", 1, 8));
    const message = body.error.details.find((one: Json) => one.results).results[0].error_message;
    expect(message).toMatch(/^raw_key_hash: at most 8 hash formats without a salt are allowed; /);
    expect(message).not.toMatch(/SHA|pepper|prefix(?! length)/);
    await suite.sql`DELETE FROM api_keys WHERE hash_algorithm IS NOT NULL`;
  });

  test("learn by an explanation that a foreign credential or key exists", async () => {
    const explain = async (body: unknown) => (await post(`${paths.keys}:explain`, body)).text;
    const unknown = await issue(rest, { actor_id: "foreign" });
    await suite.sql`DELETE FROM api_keys WHERE key_id = ${unknown.keyId}`;
    expect(await explain({ credential: foreign.secret })).toBe(await explain({ credential: unknown.secret }));
    expect(await explain({ credential: foreign.secret })).toContain("VERIFICATION_ERROR_NOT_FOUND");
    const byId = await explain({ key_id: foreign.keyId });
    expect(byId).toBe((await explain({ key_id: unknown.keyId })).replaceAll(unknown.keyId, foreign.keyId));
  });

  test("revoke, or count, keys of other actors as descendants of a token", async () => {
    const parent = await issue(caller, { ...OWN, scopes: admin, restricted_to_actor_ids: ["own"] });
    const [mine, theirs] = [await issue(rest, OWN), await issue(rest, { actor_id: "foreign" })];
    await suite.sql`
      UPDATE api_keys SET created_by = ${`admin-token:${parent.keyId}`} WHERE key_id IN (${mine.keyId}, ${theirs.keyId})`;
    const revocation = { include_descendants: true };
    const { body } = await post(`${paths.keys}/${parent.keyId}:revoke`, revocation);
    expect(body).toMatchObject({ descendant_count: 1, status: "KEY_STATUS_REVOKED" });
    expect(JSON.stringify(body)).not.toMatch(/"remaining_descendant_count":[1-9]/);
    expect(await verify(rest, mine.secret)).toMatchObject({ error_code: "VERIFICATION_ERROR_REVOKED" });
    expect(await verify(rest, theirs.secret)).toMatchObject({ is_valid: true });
    expectRefused(await post(`${paths.keys}/${unrestricted.keyId}:revoke`, revocation), NOT_CONFINED);
  });

  test("use a token that is derived from its own", async () => {
    const { token: derived } = await derive(caller, token.secret);
    expect((await suite.as(derived)("GET", paths.issued)).status).toBe(401);
  });

  test("get the key of another caller's request, or learn whose it is", async () => {
    for (const [path, body] of [
      [paths.issued, { name: "n", actor_id: "foreign", request_id: "others-1" }],
      [paths.imported, { name: "n", actor_id: "foreign", request_id: "others-2", raw_key: newRawKey() }],
    ] as const) {
      const made = succeeded(await rest("POST", path, body));
      expectRefused(await post(path, body), NOT_ITS_ACTOR);
      const replayed = await post(path, { ...body, ...OWN });
      expectRefused(replayed, taken("REQUEST_ID_REUSED", "request_id"));
      expect(replayed.text).not.toMatch(new RegExp(`foreign|${made.key_id ?? made.issued_api_key.key_id}`));
    }
  });

  test("replay a request for a token with another restriction", async () => {
    const body = { scopes: ["keyhold:verify"], request_id: "own-1" };
    succeeded(await rest("POST", paths.issued, { ...OWN, ...body, restricted_to_actor_ids: ["own", "foreign"] }));
    expectRefused(
      await create({ ...body, restricted_to_actor_ids: ["own"] }),
      taken("REQUEST_ID_REUSED", "request_id"),
    );
  });
});

describe("the lists of a restricted caller", () => {
  const LISTS = [paths.issued, paths.imported, paths.keys];
  const list = async (client: RestClient, path: string, query: Record<string, string>) => {
    const { next_page_token: next, ...body } = succeeded(await client("GET", withQuery(path, query)));
    return { keys: Object.values(body).flat() as Record<string, string>[], next: String(next) };
  };

  test.each(table(LISTS))("have own keys only, whatever is asked for: %s", async (path) => {
    for (const filter of [
      "",
      'actor_id="foreign"',
      'NOT actor_id="own"',
      'actor_id="own" OR actor_id="foreign"',
      `key_id="${foreign.keyId}" OR key_id="${foreignRaw.keyId}" OR key_id="${wider.keyId}"`,
    ]) {
      const { keys, next } = await list(caller, path, { filter, page_size: "1000" });
      expect(keys.filter((key) => key.actor_id !== "own" || key.key_id === wider.keyId)).toEqual([]);
      expect(next).toBe("");
      if (filter !== "" && !filter.startsWith('actor_id="own"')) expect(keys).toEqual([]);
    }
  });

  test.each(table(LISTS))("have own keys only, with the page token of another caller: %s", async (path) => {
    await importKey(rest, OWN);
    await importKey(rest, { actor_id: "foreign" });
    const { next } = await list(rest, path, { page_size: "1" });
    expect(next).not.toBe("");
    const { keys } = await list(caller, path, { page_size: "1000", page_token: next });
    expect(keys.filter((key) => key.actor_id !== "own")).toEqual([]);
  });
});

describe("a restricted caller may", () => {
  test("issue, read, rotate and revoke tokens that are restricted to its actors", async () => {
    const fields = { scopes: ["keyhold:keys.read"], restricted_to_actor_ids: ["own", "own"] };
    const { secret, issued_api_key: made } = succeeded(await create(fields));
    expect(made).toMatchObject({ restricted_to_actor_ids: ["own"], created_by: `admin-token:${token.keyId}` });
    const { keyId } = { keyId: made.key_id as string };
    expectRefused(await suite.as(secret)("GET", `${paths.issued}/${foreign.keyId}`), notFound(foreign.keyId));
    succeeded(await suite.as(secret)("GET", `${paths.issued}/${keyId}`));
    const rotated = succeeded(await post(`${paths.issued}/${keyId}:rotate`));
    expectRefused(await suite.as(rotated.secret)("GET", `${paths.issued}/${foreign.keyId}`), notFound(foreign.keyId));
    succeeded(await patch({ ...token, keyId }, { restricted_to_actor_ids: ["own"], name: "renamed" }));
    succeeded(await post(`${paths.keys}/${keyId}:revoke`));
  });

  test("manage keys without Keyhold scopes of each of its actors", async () => {
    const both = suite.as((await adminToken(["own", "foreign"], { actor_id: "admin" })).secret);
    for (const actorId of ["own", "foreign"]) {
      const { keyId, secret } = await issue(both, { ...OWN, actor_id: actorId });
      expect(await verify(both, secret)).toMatchObject({ is_valid: true, actor_id: actorId });
      succeeded(await both("POST", `${paths.issued}/${keyId}:revoke`, {}));
    }
  });

  test("not verify foreign credentials, nor note their use", async () => {
    expect(await verify(caller, foreign.secret)).toEqual(await verify(caller, newRawKey()));
    expect(await verify(caller, foreignRaw.rawKey)).toMatchObject({ error_code: "VERIFICATION_ERROR_NOT_FOUND" });
  });
});

test("a restriction without a Keyhold scope is refused, because it would restrict nothing", async () => {
  const answer = await rest("POST", paths.issued, { ...OWN, scopes: ["read"], restricted_to_actor_ids: ["own"] });
  expectRefused(answer, invalid("restricted_to_actor_ids"));
});

test("bulk changes of a restricted caller count and change own keys only, whatever they select", async () => {
  const bulk = suite.as((await adminToken(["bulk"], { actor_id: "admin" })).secret);
  const mine = [await issue(rest, { actor_id: "bulk" }), await importKey(rest, { actor_id: "bulk" })];
  const boss = await issue(rest, { actor_id: "bulk", scopes: admin });
  const foreign = () => storedKeys(suite.sql, suite.sql`actor_id <> 'bulk'`);
  const before = await foreign();
  const filter = "create_time < now()";
  for (const verb of ["bulkDisable", "bulkRevoke"]) {
    const run = (client: RestClient, fields = {}) => client("POST", `${paths.keys}:${verb}`, { filter, ...fields });
    expect(succeeded(await run(bulk, { validate_only: true }))).toMatchObject({ matched_count: mine.length });
    const differs = await run(bulk, { expected_count: 3 });
    expect(differs.body.error.details[0].metadata).toMatchObject({ matched_count: String(mine.length) });
    const theirs = { filter: 'actor_id="nobody"', request_id: `theirs-${verb}` };
    succeeded(await run(rest, theirs));
    expectRefused(await run(bulk, theirs), taken("REQUEST_ID_REUSED", "request_id"));
    expect(succeeded(await run(bulk))).toMatchObject({ changed_count: mine.length, done: true });
  }
  expect(await verify(rest, boss.secret)).toMatchObject({ is_valid: true });
  expect(await foreign()).toEqual(before);
});
