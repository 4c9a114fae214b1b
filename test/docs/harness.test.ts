import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { type Page, parseBlocks } from "./blocks.ts";
import { expectOutput } from "./output.ts";
import { type Ran, runPage } from "./session.ts";

const dir = mkdtempSync(join(import.meta.dirname, ".blocks-"));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const run = (...lines: string[]): Promise<Ran[]> => runUntil(new AbortController().signal, ...lines);

const runUntil = (signal: AbortSignal, ...lines: string[]): Promise<Ran[]> => {
  const markdown = lines.join("\n");
  const page: Page = { name: "a page", markdown, blocks: parseBlocks(markdown, "a page") };
  const environment = { A: "1" };
  return runPage(page, { dir, url: "http://there", replaced: { before: "after" }, environment }, signal);
};

test("blocks of a page share a shell, and each has its own output", async () => {
  const ran = await run("```sh", "x=before; echo $A", "```", "~~~sh", "echo $x http://127.0.0.1:4420", "~~~");
  expect(ran.map(({ output }) => output)).toEqual(["1\n", "after http://there\n"]);
});

test("a program is run by Node, in the checkout", async () => {
  const [ran] = await run("```ts", 'import { version } from "vitest/node";', "console.log(typeof version);", "```");
  expect(ran?.output).toBe("string\n");
});

test("a failing block is named with its output", async () => {
  const failing = run("```sh", "true", "```", "```sh", "echo gone wrong >&2; false | true", "echo on", "```");
  await expect(failing).rejects.toThrow(/^a page:4: the block failed with 1\ngone wrong/);
});

test("a server that does not start is an error", async () => {
  const page = ["```sh server", `echo '{"msg":"starting"}'`, "```"];
  await expect(run(...page)).rejects.toThrow('{"msg":"starting"}\nthe server did not start');
  const started = await run(
    "```sh server",
    `echo '{"url":"https://here:1"}'; sleep 1000`,
    "```",
    "```sh",
    "echo $KEYHOLD_URL 127.0.0.1:4420",
    "```",
  );
  expect(started.map(({ output }) => output)).toEqual(["", "https://here:1 here:1\n"]);
});

test("a page that takes too long ends with the test", async () => {
  const controller = new AbortController();
  const running = runUntil(controller.signal, "```sh", "sleep 1000", "```");
  controller.abort();
  await expect(running).rejects.toThrow("a page:");
});

test("a block of an unknown kind or without an end is refused", () => {
  for (const info of ["", "bash", "sh no-run", "json", "output"]) {
    expect(() => parseBlocks(`\`\`\`${info}\n\`\`\``, "a page")).toThrow("a page:1: a block must be one of sh, ");
  }
  expect(() => parseBlocks("```sh\n", "a page")).toThrow("a page:1: the block is not closed");
});

const ID = ["0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10", "0299b2a4-7d3e-7c52-a1f0-5c9a3b7e2d11"];

test.for([
  ["{}", "{ }"],
  ['{"a":[1,null,"x"],"b":{}}', '{\n  "b": {},\n  "a": [1, null, "x"]\n}'],
  [`{"a":"${ID[0]}"}`, `{"a":"${ID[1]}"}`],
  ['{"a":"2026-01-02T03:04:05.678Z"}', '{"a":"1999-01-01T00:00:00Z"}'],
  ['{"a":"kh_v1_abc"}', '{"a":"kh_v1_…"}'],
])("JSON %s matches the page's %s", ([actual = "", shown = ""]) => expectOutput(actual, shown, "json output"));

test.for([
  ['{"a":1}', "{}"],
  ["{}", '{"a":1}'],
  ['{"a":[1]}', '{"a":[1,2]}'],
  ['{"a":"1"}', '{"a":1}'],
  ['{"a":"no id"}', `{"a":"${ID[0]}"}`],
  ['{"a":"aXb"}', '{"a":"a.b"}'],
  ['{"a":""}', '{"a":"…"}'],
  ["no JSON", "{}"],
])("JSON %s does not match the page's %s", ([actual = "", shown = ""]) => {
  expect(() => expectOutput(actual, shown, "json output")).toThrow();
});

test("text is compared line by line", () => {
  expectOutput(`one  \n${ID[0]} two\n`, `one\n${ID[1]} …`, "text output");
  expect(() => expectOutput("one\ntwo", "one", "text output")).toThrow();
  expect(() => expectOutput("one", "two", "text output")).toThrow();
});
