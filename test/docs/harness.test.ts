import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type Page, parseBlocks } from "./blocks.ts";
import { expectOutput } from "./output.ts";
import { type Ran, runPage } from "./session.ts";

/** Runs the blocks of a page. */
async function run(...lines: string[]): Promise<Ran[]> {
  const dir = mkdtempSync(join(import.meta.dirname, ".blocks-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const markdown = lines.join("\n");
  const page: Page = { name: "a page", markdown, blocks: parseBlocks(markdown, "a page") };
  return runPage(page, { dir, url: "http://there", replaced: {}, environment: {} }, new AbortController().signal);
}

test("a failing block is named with its output", async () => {
  const failing = run("```sh", "true", "```", "```sh", "echo gone wrong >&2; false | true", "echo on", "```");
  await expect(failing).rejects.toThrow(/^a page:4: the block failed with 1\ngone wrong/);
});

test("a server that does not start is an error", async () => {
  const page = ["```sh server", `echo '{"msg":"starting"}'`, "```"];
  await expect(run(...page)).rejects.toThrow('{"msg":"starting"}\nthe server did not start');
});

test("a block of an unknown kind or without an end is refused", () => {
  for (const info of ["", "bash", "sh no-run", "json", "output"]) {
    expect(() => parseBlocks(`\`\`\`${info}\n\`\`\``, "a page")).toThrow("a page:1: a block must be one of sh, ");
  }
  expect(() => parseBlocks("```sh\n", "a page")).toThrow("a page:1: the block is not closed");
});

const ID = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10";

test.for([
  ['{"a":1}', "{}"],
  ["{}", '{"a":1}'],
  ['{"a":[1]}', '{"a":[1,2]}'],
  ['{"a":"1"}', '{"a":1}'],
  ['{"a":"no id"}', `{"a":"${ID}"}`],
  ['{"a":"aXb"}', '{"a":"a.b"}'],
  ['{"a":""}', '{"a":"…"}'],
  ["no JSON", "{}"],
])("JSON %s does not match the page's %s", ([actual = "", shown = ""]) => {
  expect(() => expectOutput(actual, shown, "json output")).toThrow();
});

test("text is compared line by line", () => {
  expect(() => expectOutput("one\ntwo", "one", "text output")).toThrow();
  expect(() => expectOutput("one", "two", "text output")).toThrow();
});
