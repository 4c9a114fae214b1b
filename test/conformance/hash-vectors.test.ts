import { readFileSync } from "node:fs";
import { fromJson } from "@bufbuild/protobuf";
import { beforeAll, describe, expect, test } from "vitest";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import {
  CreateImportedApiKeyRequestSchema,
  ImportedApiKeysService,
} from "../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import { succeeded, table } from "../support/conformance.ts";
import { adopted } from "../support/hashed-keys.ts";
import { answered } from "../support/protocols/call.ts";
import { useProtocols } from "../support/protocols/protocols.ts";
import { type Json, paths } from "../support/rest.ts";

/** Hashes of the same raw key that other implementations have made, one of each algorithm and kind. */
const suite = useProtocols();
const read = (file: string) =>
  JSON.parse(readFileSync(new URL(`../vectors/raw-key-hashes/${file}.json`, import.meta.url), "utf8"));
const KEYS: Json = read("keys");
const MAKERS = ["python", "go"].map(read);
const RAW_KEY: string = KEYS.raw_keys.ascii;

interface Vector {
  readonly name: string;
  readonly fields: Json;
}

const fast: Vector[] = MAKERS.flatMap(({ maker, fast: vectors = [] }: Json) =>
  firstOfEach(
    vectors.filter(({ key }: Json) => key === "ascii"),
    ({ algorithm, encoding }) => `${algorithm} ${encoding}`,
  ).map(({ algorithm, encoding, value, prefix = "", suffix = "", hmac_key }) => ({
    name: `${algorithm} in ${encoding} by ${maker}`,
    fields: {
      raw_key_hash: {
        ...{ algorithm: `HASH_ALGORITHM_${algorithm}`, encoding: `TEXT_ENCODING_${encoding}`, value, prefix, suffix },
        ...(hmac_key && { hmac_key_id: hmac_key }),
      },
    },
  })),
);
const slow: Vector[] = MAKERS.flatMap(({ slow: vectors = [] }: Json) =>
  firstOfEach(
    vectors.filter(({ key, matches = true }: Json) => key === "ascii" && matches),
    ({ made_by, phc }) => `${made_by} ${/^\$[^$]*/.exec(phc)?.[0]}`,
  ).map(({ made_by, phc, prefix = "", suffix = "" }) => ({
    name: `${/^\$[^$]*/.exec(phc)?.[0]} by ${made_by}`,
    fields: { raw_key_hash: { phc, prefix, suffix }, lookup_prefix: RAW_KEY.slice(0, 8) },
  })),
);

function firstOfEach(vectors: readonly Json[], nameOf: (vector: Json) => string): Json[] {
  return [...new Map([...vectors].reverse().map((vector) => [nameOf(vector), vector])).values()].reverse();
}

beforeAll(async () => {
  for (const [hmac_key_id, key] of Object.entries<string>(KEYS.hmac_keys))
    succeeded(await suite.rest("POST", paths.hmacKeys, { hmac_key_id, key, encoding: "TEXT_ENCODING_HEX" }));
});

test("there are vectors of every algorithm", () => {
  const algorithms = new Set(fast.map(({ fields }) => fields.raw_key_hash.algorithm));
  expect(algorithms.size).toBe(6);
  for (const kind of ["$2b", "$argon2id", "$scrypt", "$pbkdf2"])
    expect(slow.some(({ name }) => name.startsWith(kind))).toBe(true);
});

describe.each(["gRPC", "Connect in JSON", "REST"])("over %s", (name) => {
  test.each(table([...fast, ...slow]))("a key is imported, verified and adopted by $name", async ({ fields }) => {
    const call = suite.protocols.find((one) => one.name === name)?.call ?? expect.unreachable();
    const request = fromJson(CreateImportedApiKeyRequestSchema, { name: "a key", actor_id: "actor_1", ...fields });
    const { createImportedApiKey, deleteImportedApiKey } = ImportedApiKeysService.method;
    const { keyId, hashAlgorithm } = answered(await call(createImportedApiKey, request));
    expect(hashAlgorithm).toBeGreaterThan(0);
    const verify = async (credential: string) =>
      answered(await call(ApiKeysService.method.verifyApiKey, { credential }));
    expect(await verify(`${RAW_KEY}.`)).toMatchObject({ isValid: false });
    expect(await verify(RAW_KEY)).toMatchObject({ isValid: true, keyId });
    await adopted(suite.rest, keyId);
    expect(await verify(RAW_KEY)).toMatchObject({ isValid: true, keyId });
    expect(await verify(`${RAW_KEY}.`)).toMatchObject({ isValid: false });
    await call(deleteImportedApiKey, { keyId });
    expect(await verify(RAW_KEY)).toMatchObject({ isValid: false });
    // Each scheme is another one, and there may be eight.
    await suite.sql`DELETE FROM hash_schemes`;
  });
});
