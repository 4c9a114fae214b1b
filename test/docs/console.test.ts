import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { navigation } from "../../console/navigation.ts";
import { common } from "../../console/texts/common.ts";
import { rowOf } from "../../src/api/v2alpha1/rpcs.ts";
import { RPCS } from "../support/wire.ts";
import { ROOT, readPage } from "./blocks.ts";

const { markdown } = readPage("docs/console.md");
const { markdown: ofOwners } = readPage("docs/key-page.md");
const { markdown: ofClients } = readPage("docs/clients.md");

/** Returns the scope of an RPC by its name, such as `ApiKeysService/ListApiKeys`. */
function scopeOf(rpc: string) {
  const method = RPCS.find(({ parent, name }) => `${parent.name}/${name}` === rpc);
  return method && rowOf(method)?.policy;
}

test("docs/console.md lists the pages of the navigation, with the scope that each needs", () => {
  const rows = [...markdown.matchAll(/^\| ([^|]+) \| [^|]+ \| `(keyhold:[^`]+)` \|$/gm)];
  const [overview, ...others] = navigation;
  expect(overview.requires).toEqual([]);
  const needed = others.map(({ name, requires }) => [common.en.pages[name], ...new Set(requires.map(scopeOf))]);
  expect(rows.map(([, page, scope]) => [page, scope])).toEqual(needed);
});

test("docs/console.md, docs/key-page.md and docs/clients.md show each picture once", () => {
  const shown = [
    ...`${markdown}\n${ofOwners}\n${ofClients}`.matchAll(/^!\[[^\]]+\]\(images\/console\/([\w-]+\.png)\)$/gm),
  ].map(([, file]) => file);
  expect(shown.sort()).toEqual(readdirSync(join(ROOT, "docs/images/console")).sort());
});
