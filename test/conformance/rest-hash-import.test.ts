import { describe, expect, test } from "vitest";
import { RFC_3339_UTC, useService } from "../support/conformance.ts";
import { adopted, importHashed, sha256Of } from "../support/hashed-keys.ts";
import { verify } from "../support/rest.ts";

const suite = useService();
const { rest } = suite;
const time = expect.stringMatching(RFC_3339_UTC);

describe("a key of which only a SHA-256 is known", () => {
  test("is imported, verified by its raw key and adopted", async () => {
    const { rawKey, keyId, record } = await importHashed(rest, { scopes: ["read"] });
    expect(record).toMatchObject({ hash_algorithm: "HASH_ALGORITHM_SHA256", hint: "" });
    expect(JSON.stringify(record)).not.toContain(sha256Of(rawKey).raw_key_hash.value);
    expect(await verify(rest, rawKey)).toMatchObject({ is_valid: true, key_id: keyId, scopes: ["read"] });
    const after = await adopted(rest, keyId);
    expect(after).toMatchObject({ adopt_time: time });
    expect(await verify(rest, rawKey)).toMatchObject({ is_valid: true, key_id: keyId });
  });
});
