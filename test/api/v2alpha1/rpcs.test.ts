import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel as Level } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import type { DerivedKeysService } from "../../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import type { ServiceRows, TableRow } from "../../../src/api/row.ts";
import { rowOf, SERVICES } from "../../../src/api/v2alpha1/rpcs.ts";
import { table } from "../../support/conformance.ts";

const METHODS: readonly DescMethod[] = SERVICES.flatMap(({ methods }) => methods);

const page = readFileSync(resolve(import.meta.dirname, "../../../docs/api.md"), "utf8");
/** The rows of docs/api.md on retries: the named methods, and the rest of the row. */
const RETRIES = [...page.matchAll(/^\| (`\w+`[^|]*) \| ([^|]+) \|$/gm)].map(([, call = "", result = ""]) => ({
  call,
  result,
}));

const jwksRow: TableRow<typeof DerivedKeysService.method.getJwks> = {
  implement: () => () => () => ({}),
  policy: "public",
  idempotency: "no side effects",
};

/** A service with one method. */
interface JwksService extends Omit<DescService, "method"> {
  readonly method: { readonly getJwks: typeof DerivedKeysService.method.getJwks };
}

test("the compiler rejects a table without a row for a method, and a row that names a field which its messages do not have", () => {
  const rows: ServiceRows<JwksService> = { getJwks: jwksRow };
  // @ts-expect-error: getJwks has no row
  const incomplete: ServiceRows<JwksService> = {};
  // @ts-expect-error: the request has no pageSize
  const wrongRequest: typeof jwksRow = { ...jwksRow, cost: ({ pageSize }) => Number(pageSize) };
  // @ts-expect-error: the response has no keyId
  const wrongResponse: typeof jwksRow = { ...jwksRow, keyId: (_, { keyId }) => String(keyId) };
  expect([rows, incomplete, wrongRequest, wrongResponse]).toHaveLength(4);
});

describe.each(table(METHODS.map((method) => [method.name, method] as const)))("the row of %s", (name, method) => {
  const row = rowOf(method);

  test("exists, and agrees with the idempotency_level of the proto", () => {
    const levels = { "no side effects": Level.NO_SIDE_EFFECTS, idempotent: Level.IDEMPOTENT } as const;
    const { idempotency = "none" } = row ?? {};
    const expected =
      idempotency === "no side effects" || idempotency === "idempotent" ? levels[idempotency] : undefined;
    expect(row).toBeDefined();
    expect(method.idempotency).toBe(expected ?? Level.IDEMPOTENCY_UNKNOWN);
  });

  test("agrees with docs/api.md about retries", () => {
    const rows = RETRIES.filter(({ call }) => call.includes(`\`${name}\``));
    expect(rows.some(({ call }) => call.includes("`request_id`"))).toBe(row?.idempotency === "request_id");
    if (row?.idempotency === "no side effects") expect(rows).toEqual([]);
    if (row?.idempotency === "none") expect(rows).toHaveLength(1);
  });
});
