import { describe, expect, test } from "vitest";
import { expectRefused, importKey, invalid, keyKinds, succeeded, table, useService } from "../support/conformance.ts";
import { type Answer, issue, type Json, paths } from "../support/rest.ts";

const suite = useService();
const { rest } = suite;

const many = (count: number) => Array.from({ length: count }, (_, index) => `scope:${index}`);
const entries = (count: number) => Object.fromEntries(many(count).map((key) => [key, "v"]));
/** Metadata of so many bytes in all; the name takes 3 of them with 2 characters. */
const bytes = (size: number) => ({ kü: "v".repeat(size - 3) });

/** Fields of every key with the longest and oddest values that are allowed. */
const TAKEN: readonly (readonly [what: string, fields: Json])[] = [
  ["a name of 1 character", { name: "n" }],
  ["a name of 255 characters", { name: "n".repeat(255) }],
  ["a name of 255 characters beyond the BMP", { name: "\u{1f511}".repeat(255) }],
  ["an actor of 1 character", { actor_id: "a" }],
  ["an actor of 255 characters", { actor_id: "ü".repeat(255) }],
  ["no scopes", { scopes: [] }],
  ["100 scopes", { scopes: many(100) }],
  ["a scope of 255 characters", { scopes: ["s".repeat(255)] }],
  [
    "every visible ASCII character in a scope",
    {
      scopes: [
        String.fromCharCode(
          ...Array(94)
            .keys()
            .map((i) => 33 + i),
        ),
      ],
    },
  ],
  ["64 entries of metadata", { metadata: entries(64) }],
  ["4 KiB of metadata", { metadata: bytes(4096) }],
  ["an entry that is empty", { metadata: { k: "" } }],
];

const REFUSED: readonly (readonly [what: string, fields: Json, field: string])[] = [
  ["no name", { name: undefined }, "name"],
  ["an empty name", { name: "" }, "name"],
  ["a name that is null", { name: null }, "name"],
  ["a name of 256 characters", { name: "n".repeat(256) }, "name"],
  ["a name that is a number", { name: 1 }, "name"],
  ["no actor", { actor_id: undefined }, "actor_id"],
  ["an empty actor", { actor_id: "" }, "actor_id"],
  ["an actor of 256 characters", { actor_id: "a".repeat(256) }, "actor_id"],
  ["101 scopes", { scopes: many(101) }, "scopes"],
  ["a scope of 256 characters", { scopes: ["ok", "s".repeat(256)] }, "scopes[1]"],
  ["an empty scope", { scopes: ["ok", ""] }, "scopes[1]"],
  ["a scope with a space", { scopes: ["a b"] }, "scopes[0]"],
  ["a scope with a line feed", { scopes: ["a\n"] }, "scopes[0]"],
  ["a scope with a control character", { scopes: ["a\u007f"] }, "scopes[0]"],
  ["a scope that is not ASCII", { scopes: ["é"] }, "scopes[0]"],
  ["a scope that is null", { scopes: [null] }, "scopes[0]"],
  ["scopes in one string", { scopes: "read write" }, "scopes"],
  ["65 entries of metadata", { metadata: entries(65) }, "metadata"],
  ["metadata of 4097 bytes", { metadata: bytes(4097) }, "metadata"],
  ["an entry that is a number", { metadata: { k: 1 } }, "metadata.k"],
  ["an entry that is an object", { metadata: { k: {} } }, "metadata.k"],
  ["an entry that is null", { metadata: { k: null } }, "metadata.k"],
  ["an entry without a name", { metadata: { "": "v" } }, 'metadata[""]'],
  ["metadata in a list", { metadata: [] }, "metadata"],
  ["a field that is misspelt", { scope: ["read"] }, "scope"],
  ["a field of the record", { status: "KEY_STATUS_ACTIVE" }, "status"],
  ["a request identifier with a space", { request_id: "a b" }, "request_id"],
  ["a request identifier of 129 characters", { request_id: "r".repeat(129) }, "request_id"],
  ["an empty request identifier", { request_id: "" }, "request_id"],
];

describe.each(keyKinds(rest))("for an $kind key", ({ path, required }) => {
  test.each(table(TAKEN))("%s is accepted", async (_, fields) => {
    const { issued_api_key, ...rest_ } = succeeded(await rest("POST", path, { ...required(), ...fields }));
    expect(issued_api_key ?? rest_).toMatchObject(fields);
  });

  test.each(table(REFUSED))("%s is refused", async (_, fields, field) => {
    const [before] = await suite.sql`SELECT count(*) FROM api_keys`;
    expectRefused(await rest("POST", path, { ...required(), ...fields }), invalid(field));
    const [after] = await suite.sql`SELECT count(*) FROM api_keys`;
    expect(after).toEqual(before);
  });

  test("a duplicate scope counts once", async () => {
    const { issued_api_key, ...record } = succeeded(
      await rest("POST", path, { ...required(), scopes: ["b", "a", "b"] }),
    );
    expect((issued_api_key ?? record).scopes).toEqual(["b", "a"]);
  });
});

const RAW_KEYS = [
  ["1 byte", "k"],
  ["4096 bytes", "k".repeat(4096)],
  ["4096 bytes of two-byte characters", "ü".repeat(2048)],
  ["spaces and control characters", " a key\twith\nspaces "],
] as const;

describe("raw_key", () => {
  test.each(table(RAW_KEYS))("of %s is accepted and verifies unchanged", async (_, rawKey) => {
    const { keyId } = await importKey(rest, { raw_key: rawKey, allow_weak: true });
    const verdict = succeeded(await rest("POST", `${paths.keys}:verify`, { credential: rawKey }));
    expect(verdict).toMatchObject({ is_valid: true, key_id: keyId });
    const other = succeeded(await rest("POST", `${paths.keys}:verify`, { credential: `${rawKey} ` }));
    expect(other).toMatchObject({ is_valid: false, error_code: "VERIFICATION_ERROR_NOT_FOUND" });
  });

  const refused = [
    ["absent", undefined],
    ["empty", ""],
    ["of 4097 bytes", "k".repeat(4097)],
    ["of 4098 bytes in 2049 characters", "ü".repeat(2049)],
    ["a number", 123456],
    ["with the character NUL", "a\0b"],
    ["with a lone surrogate", "a\ud800b"],
  ] as const;

  test.each(table(refused))("%s is refused", async (_, rawKey) => {
    expectRefused(
      await rest("POST", paths.imported, { name: "n", actor_id: "a", raw_key: rawKey }),
      invalid("raw_key"),
    );
  });
});

describe("credential", () => {
  const CALLS = [
    ["verify", `${paths.keys}:verify`, {}],
    ["derive", `${paths.keys}:derive`, { algorithm: "TOKEN_ALGORITHM_JWT" }],
    ["selfRevoke", paths.selfRevoke, { reason: "REVOCATION_REASON_SUPERSEDED" }],
  ] as const;

  describe.each(table(CALLS))("of %s", (_, path, fields) => {
    test.each(table([undefined, "", null, 7, "c".repeat(8193), "ü".repeat(4097)]))(
      "is refused as %j",
      async (credential) => {
        expectRefused(await rest("POST", path, { ...fields, credential }), invalid("credential"));
      },
    );

    test("may have 8192 bytes", async () => {
      const answer = await rest("POST", path, { ...fields, credential: "ü".repeat(4096) });
      expect(answer.text).toContain("VERIFICATION_ERROR_NOT_FOUND");
    });
  });
});

const LISTS: readonly (readonly [field: string, most: number, send: (list: readonly string[]) => Promise<Answer>])[] = [
  ["required_scopes", 32, (required_scopes) => post(":verify", { credential: "c", required_scopes })],
  ["required_scopes", 32, (required_scopes) => post(":explain", { credential: "c", required_scopes })],
  [
    "restricted_to_actor_ids",
    100,
    (restricted_to_actor_ids) => {
      const fields = { name: "n", actor_id: "a", scopes: ["keyhold:verify"] };
      return rest("POST", paths.issued, { ...fields, restricted_to_actor_ids });
    },
  ],
];

const post = (verb: string, body: Json) => rest("POST", `${paths.keys}${verb}`, body);

test.each(table(LISTS))("%s may have %d values, and no more", async (field, most, send) => {
  succeeded(await send(many(most)));
  expectRefused(await send(many(most + 1)), invalid(field));
});

describe("custom_claims", () => {
  /** Returns `{"c":"…"}` with that many bytes. */
  const claims = (size: number) => ({ c: "x".repeat(size - 8) });

  test("may have 4 KiB as JSON, and no more", async () => {
    const { secret } = await issue(rest);
    const body = { credential: secret, algorithm: "TOKEN_ALGORITHM_JWT" };
    expect(JSON.stringify(claims(4096)).length).toBe(4096);
    const taken = await rest("POST", `${paths.keys}:derive`, { ...body, custom_claims: claims(4096) });
    expect(succeeded(taken).token.claims).toEqual(claims(4096));
    const refused = await rest("POST", `${paths.keys}:derive`, { ...body, custom_claims: claims(4097) });
    expectRefused(refused, invalid("custom_claims"));
  });
});
