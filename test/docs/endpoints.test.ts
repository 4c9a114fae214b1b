import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { http } from "../../gen/google/api/annotations_pb.js";
import { CODES } from "../../src/api/errors.ts";
import { rowOf, SERVICES } from "../../src/api/v2alpha1/rpcs.ts";
import { ROOT } from "./blocks.ts";

const ANY_SCOPE = "any Keyhold scope";
const page = readFileSync(resolve(ROOT, "docs/endpoints.md"), "utf8");

/** Returns the line below a heading of the page. */
function lineOf(method: DescMethod): string {
  const { pattern } = getOption(method, http);
  const path = String(pattern.value).replace(/\{\w+\.(\w+)\}/, "{$1}");
  const route = pattern.case === undefined ? "no path" : `\`${pattern.case.toUpperCase()} ${path}\``;
  const policy = rowOf(method)?.policy;
  const needed =
    policy === "public" ? "no token needed" : policy === "authenticated" ? ANY_SCOPE : `scope \`${policy}\``;
  return `${route} · RPC \`${method.parent.name}/${method.name}\` · ${needed}`;
}

test("docs/endpoints.md lists exactly the RPCs, with path and required scope", () => {
  const methods = SERVICES.flatMap((service): readonly DescMethod[] => service.methods);
  expect(page.match(/^.* · RPC .*$/gm)?.sort()).toEqual(methods.map(lineOf).sort());
});

test("docs/endpoints.md lists exactly the errors", () => {
  const paragraphs = page.match(/^Errors.*?\n\n/gms) ?? [];
  const named = paragraphs.flatMap((text) => [...text.matchAll(/`([A-Z_]+)`/g)].map(([, name = ""]) => name));
  expect([...new Set(named)].sort()).toEqual(Object.keys(CODES).sort());
});
