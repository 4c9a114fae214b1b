import { beforeAll, describe, expect, test } from "vitest";
import { ADMIN_SCOPES } from "../../src/domain/admin-scopes.ts";
import { expectRefused, importKey, invalid, newRawKey, succeeded, table } from "../support/conformance.ts";
import { lacking, useGuardedService } from "../support/guarded.ts";
import { type Answer, issue, paths, type RestClient, verify } from "../support/rest.ts";
import { storedKeys } from "../support/stored-keys.ts";

const suite = useGuardedService();
const { rest } = suite;

/** Manages keys, and has one other Keyhold scope. */
let writer: RestClient;
beforeAll(async () => {
  writer = suite.as((await issue(rest, { scopes: ["keyhold:keys.write", "keyhold:verify"] })).secret);
});

/** Scopes that `writer` lacks. */
const LACKED = ["keyhold:admin", "keyhold:keys.read", "keyhold:derive"];
const HELD = ["keyhold:keys.write", "keyhold:verify"];

const draft = (scopes: readonly string[]) => ({ name: "n", actor_id: "a", scopes });
const importDraft = (scopes: readonly string[]) => ({ ...draft(scopes), raw_key: newRawKey() });

/** A key with `scopes`, and one without Keyhold scopes. */
interface Keys {
  readonly reserved: string;
  readonly plain: string;
}

interface Operation {
  readonly title: string;
  readonly keys: (scopes: readonly string[]) => Promise<Keys>;
  readonly run: (caller: RestClient, keys: Keys, scopes: readonly string[]) => Promise<Answer>;
}

const issuedKeys = async (scopes: readonly string[]): Promise<Keys> => ({
  reserved: (await issue(rest, { scopes })).keyId,
  plain: (await issue(rest, { scopes: ["read"] })).keyId,
});
const importedKeys = async (scopes: readonly string[]): Promise<Keys> => ({
  reserved: (await importKey(rest, { scopes })).keyId,
  plain: (await importKey(rest, { scopes: ["read"] })).keyId,
});

function operation(title: string, keys: Operation["keys"], run: Operation["run"]): Operation {
  return { title, keys, run };
}

/** All operations that could grant a Keyhold scope to a key, or change a key that has one. */
const OPERATIONS: readonly Operation[] = [
  operation("issue a key with", issuedKeys, (caller, _, scopes) => caller("POST", paths.issued, draft(scopes))),
  operation("import a key with", importedKeys, (caller, _, scopes) =>
    caller("POST", paths.imported, importDraft(scopes)),
  ),
  ...[issuedKeys, importedKeys].flatMap((keys) => {
    const [kind, path] = keys === issuedKeys ? ["issued", paths.issued] : ["imported", paths.imported];
    return [
      operation(`update an ${kind} key to`, keys, (caller, { plain }, scopes) =>
        caller("PATCH", `${path}/${plain}`, { scopes }),
      ),
      operation(`take every scope from an ${kind} key with`, keys, (caller, { reserved }) =>
        caller("PATCH", `${path}/${reserved}?update_mask=scopes`, {}),
      ),
      operation(`rename an ${kind} key with`, keys, (caller, { reserved }) =>
        caller("PATCH", `${path}/${reserved}`, { name: "mine" }),
      ),
      operation(`revoke an ${kind} key with`, keys, (caller, { reserved }) =>
        caller("POST", `${path}/${reserved}:revoke`, {}),
      ),
      operation(`revoke, by its id alone, an ${kind} key with`, keys, (caller, { reserved }) =>
        caller("POST", `${paths.keys}/${reserved}:revoke`, {}),
      ),
    ];
  }),
  operation("rotate a key with", issuedKeys, (caller, { reserved }) =>
    caller("POST", `${paths.issued}/${reserved}:rotate`, {}),
  ),
  operation("rotate, with a grace period, a key with", issuedKeys, (caller, { reserved }) =>
    caller("POST", `${paths.issued}/${reserved}:rotate`, { grace_period: "1h" }),
  ),
  operation("delete a key with", importedKeys, (caller, { reserved }) =>
    caller("DELETE", `${paths.imported}/${reserved}`),
  ),
];

/** All stored keys, without the times of use. */
describe.each(table(OPERATIONS))("a caller with keys.write", ({ title, keys, run }) => {
  test(`may not ${title} a Keyhold scope that it lacks`, async () => {
    const target = await keys(["read", "keyhold:admin"]);
    const before = await storedKeys(suite.sql);
    expectRefused(await run(writer, target, ["read", "keyhold:admin"]), lacking("keyhold:admin"));
    expect(await storedKeys(suite.sql)).toEqual(before);
  });

  test(`may ${title} the Keyhold scopes that it has`, async () => {
    succeeded(await run(writer, await keys(HELD), HELD));
  });

  test(`may, as an administrator, ${title} any Keyhold scope`, async () => {
    succeeded(await run(rest, await keys(LACKED), LACKED));
  });
});

describe("the parts of keys.write", () => {
  const PARTS = ADMIN_SCOPES.filter((scope) => /^keyhold:keys\.(?!read|write)/.test(scope));

  test("may be granted by a caller with keys.write, and keys with them changed", async () => {
    const { keyId } = await issue(writer, { scopes: PARTS });
    succeeded(await writer("PATCH", `${paths.issued}/${keyId}`, { scopes: PARTS.slice(1) }));
    succeeded(await writer("POST", `${paths.issued}/${keyId}:revoke`, {}));
  });

  test("do not include keys.write, nor each other", async () => {
    const { secret } = await issue(rest, { scopes: PARTS });
    expectRefused(
      await suite.as(secret)("POST", paths.issued, draft(["keyhold:keys.write"])),
      lacking("keyhold:keys.write"),
    );
    const issuer = suite.as(suite.token("keyhold:keys.issue"));
    succeeded(await issuer("POST", paths.issued, draft(["keyhold:keys.issue"])));
    expectRefused(await issuer("POST", paths.issued, draft(["keyhold:keys.revoke"])), lacking("keyhold:keys.revoke"));
  });
});

describe("a key with a scope that the caller lacks", () => {
  test.each(table(LACKED))("is neither created nor changed: %s", async (scope) => {
    expectRefused(await writer("POST", paths.issued, draft([...HELD, scope])), lacking(scope));
    const { keyId } = await issue(rest, { scopes: [...HELD, scope] });
    expectRefused(await writer("PATCH", `${paths.issued}/${keyId}`, { name: "mine" }), lacking(scope));
  });

  test("is refused with the same error in every state, which reveals nothing", async () => {
    const { keyId } = await issue(rest, { scopes: ["keyhold:admin"] });
    await rest("POST", `${paths.keys}/${keyId}:revoke`, {});
    for (const verb of ["rotate", "revoke"])
      expectRefused(await writer("POST", `${paths.issued}/${keyId}:${verb}`, {}), lacking("keyhold:admin"));
    expectRefused(await writer("PATCH", `${paths.issued}/${keyId}`, { name: "n" }), lacking("keyhold:admin"));
  });

  test("may still be revoked by its own secret", async () => {
    const { secret } = await issue(rest, { scopes: ["keyhold:admin"] });
    succeeded(await writer("POST", paths.selfRevoke, { credential: secret }));
    expect(await verify(rest, secret)).toMatchObject({ is_valid: false });
  });
});

describe("a request_id", () => {
  test("of an administrator's key does not return it to a caller that lacks its scope", async () => {
    for (const [path, body] of [
      [paths.issued, { ...draft(["keyhold:admin"]), request_id: "admins-1" }],
      [paths.imported, { ...importDraft(["keyhold:admin"]), request_id: "admins-2" }],
    ] as const) {
      succeeded(await rest("POST", path, body));
      expectRefused(await writer("POST", path, body), lacking("keyhold:admin"));
      const otherwise = await writer("POST", path, { ...body, scopes: [] });
      expectRefused(otherwise, {
        code: 409,
        status: "ALREADY_EXISTS",
        reason: "REQUEST_ID_REUSED",
        fields: ["request_id"],
      });
    }
  });

  test("does not return a key that has gained a scope that the caller lacks", async () => {
    for (const [path, body] of [
      [paths.issued, { ...draft(["read"]), request_id: "writers-1" }],
      [paths.imported, { ...importDraft(["read"]), request_id: "writers-2" }],
    ] as const) {
      const made = succeeded(await writer("POST", path, body));
      const keyId = made.key_id ?? made.issued_api_key.key_id;
      succeeded(await writer("POST", path, body));
      succeeded(await rest("PATCH", `${path}/${keyId}`, { scopes: ["keyhold:admin"] }));
      expectRefused(await writer("POST", path, body), lacking("keyhold:admin"));
    }
  });
});

describe("a batch import", () => {
  const batch = (caller: RestClient, ...scopes: string[][]) =>
    caller("POST", `${paths.imported}:batchCreate`, { requests: scopes.map(importDraft) });

  test("refuses the items with a scope that the caller lacks, and imports the others", async () => {
    const body = succeeded(await batch(writer, ["read"], ["keyhold:admin"], HELD, ["read", "keyhold:derive"]));
    expect(body).toMatchObject({ success_count: 2, failure_count: 2 });
    const refused = (scope: string) => ({
      error_code: "BATCH_CREATE_IMPORTED_API_KEYS_ERROR_INVALID_ARGUMENT",
      error_message: `managing a key with the scope ${scope} requires that scope`,
      warnings: [],
    });
    expect(body.results[1]).toEqual({ index: 1, ...refused("keyhold:admin") });
    expect(body.results[3]).toEqual({ index: 3, ...refused("keyhold:derive") });
  });

  test("with only such items is 403 and imports nothing", async () => {
    const before = await storedKeys(suite.sql);
    const { status, body } = await batch(writer, ["keyhold:admin"], ["keyhold:derive"]);
    expect({ status, reason: body.error.details[0].reason }).toEqual({ status: 403, reason: "CALLER_NOT_PERMITTED" });
    expect(await storedKeys(suite.sql)).toEqual(before);
  });
});

test.each(["keyhold:verfy", "keyhold:of-a-later-version", "keyhold:"])(
  "the unknown scope %s is refused by every way of creating or changing a key, also for an administrator",
  async (scope) => {
    const [own, foreign] = [await issue(rest), await importKey(rest)];
    const scopes = ["read", scope];
    expectRefused(await rest("POST", paths.issued, draft(scopes)), invalid("scopes[1]"));
    expectRefused(await rest("POST", paths.imported, importDraft(scopes)), invalid("scopes[1]"));
    const hash = { algorithm: "HASH_ALGORITHM_SHA256", value: "00".repeat(32), encoding: "TEXT_ENCODING_HEX" };
    expectRefused(await rest("POST", paths.imported, { ...draft(scopes), raw_key_hash: hash }), invalid("scopes[1]"));
    const batch = await rest("POST", `${paths.imported}:batchCreate`, {
      requests: [importDraft(["read"]), importDraft(scopes)],
    });
    expect(succeeded(batch)).toMatchObject({ success_count: 1, failure_count: 1 });
    for (const [kind, path, keyId] of [
      ["issued", paths.issued, own.keyId],
      ["imported", paths.imported, foreign.keyId],
    ] as const) {
      expectRefused(await rest("PATCH", `${path}/${keyId}`, { scopes }), invalid(`${kind}_api_key.scopes[1]`));
    }
  },
);
