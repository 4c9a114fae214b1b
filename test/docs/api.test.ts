import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { VerificationErrorSchema } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { CODES } from "../../src/api/errors.ts";
import { INVALID_REASONS } from "../../src/domain/errors.ts";
import { parseKeyFilter } from "../../src/keys/filter.ts";
import { HTTP_ERRORS, STATUSES } from "../../src/transport/wire/http-error.ts";
import { ROOT, readPage } from "./blocks.ts";

const api = readFileSync(resolve(ROOT, "docs/api.md"), "utf8");

/** Returns the cells of table rows whose first cell is a name in code. */
function rows(cells: number): string[][] {
  return [...api.matchAll(/^\| `([A-Z_]+)` \|(.*)\|$/gm)]
    .map(([, name = "", rest = ""]) => [name, ...rest.split("|").map((cell) => cell.trim())])
    .filter((row) => row.length === cells);
}

test("docs/api.md documents exactly the error reasons, with their status", () => {
  const documented = rows(4).map(([reason, status, http]) => `${reason} ${status} ${http}`);
  const errors = Object.entries(CODES).map(
    ([reason, code]) => `${reason} ${STATUSES[code].name} ${STATUSES[code].http}`,
  );
  const refusals = Object.entries(HTTP_ERRORS).map(
    ([reason, { code, http }]) => `${reason} ${STATUSES[code].name} ${http}`,
  );
  expect(documented.sort()).toEqual([...errors, ...refusals].sort());
});

test("docs/api.md documents exactly the reasons of invalid fields", () => {
  const [, table = ""] = api.split(/^\| Reason of a field .*$/m);
  const cells = table.split("\n\n")[0]?.match(/^\| `.*?` \|/gm) ?? [];
  const documented = cells.flatMap((cell) => cell.match(/[A-Z_]+/g) ?? []);
  expect(documented).toEqual([...INVALID_REASONS]);
});

test("docs/api.md documents exactly the verification errors", () => {
  const documented = rows(2).flatMap(([name = ""]) => (name.startsWith("VERIFICATION_ERROR_") ? [name] : []));
  const defined = VerificationErrorSchema.values
    .map(({ name }) => name)
    .filter((name) => !name.endsWith("_UNSPECIFIED"));
  expect(documented.sort()).toEqual(defined.sort());
});

test("docs/api.md shows valid filters", () => {
  const shown = readPage("docs/api.md").blocks.find(({ text }) => text.startsWith("actor_id="));
  const filters = shown?.text.trim().split("\n") ?? [];
  expect(filters.length).toBeGreaterThan(2);
  for (const filter of filters) expect(() => parseKeyFilter(filter, "issued", Date.now)).not.toThrow();
});
