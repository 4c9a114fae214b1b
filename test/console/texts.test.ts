import { readdirSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { type ESTree, parseSync, Visitor, type VisitorObject } from "rolldown/utils";
import { expect, test } from "vitest";
import type { Language } from "../../console/texts/catalogue.ts";
import { table } from "../support/conformance.ts";

const ROOT = resolve(import.meta.dirname, "../..");

/** The source files of the console, by their paths in the repository. */
const SOURCES: ReadonlyMap<string, string> = new Map(
  readdirSync(join(ROOT, "console"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
    .filter((path) => !/^console\/(?:dist|node_modules)\//.test(path))
    .map((path) => [path, readFileSync(join(ROOT, path), "utf8")]),
);

const paths = (pattern: RegExp) => table([...SOURCES.keys()].filter((path) => pattern.test(path)));

function visit(path: string, visitor: VisitorObject): void {
  new Visitor(visitor).visit(parseSync(path, SOURCES.get(path) ?? "").program);
}

type Text = string | ((...args: readonly unknown[]) => string);

/** The texts of a catalogue in a language, by their paths in it. */
type Texts = ReadonlyMap<string, Text>;

const CATALOGUES = paths(/^console\/texts\/(?!catalogue\.).*\.ts$/);

async function load(path: string): Promise<Readonly<Record<Language, Texts>>> {
  const exported: readonly Record<Language, object>[] = Object.values(await import(join(ROOT, path)));
  const { en, de } = exported.find((one) => "en" in one) ?? expect.fail(`${path} has no catalogue`);
  const textsOf = (value: object): [string, Text][] =>
    Object.entries(value).flatMap(([name, member]): [string, Text][] =>
      typeof member === "object"
        ? textsOf(member).map(([inner, text]) => [`${name}.${inner}`, text])
        : [[name, member]],
    );
  return { en: new Map(textsOf(en)), de: new Map(textsOf(de)) };
}

test("both languages have the same members, and no text is empty", async () => {
  for (const path of CATALOGUES) {
    const { en, de } = await load(path);
    const kinds = (texts: Texts) => [...texts].map(([name, text]) => `${name}: ${typeof text}`).sort();
    expect(kinds(de), path).toEqual(kinds(en));
    expect([...en, ...de].filter(([, text]) => typeof text === "string" && text.trim() === "")).toEqual([]);
  }
});

/** Texts that are the same in both languages, by the reason. */
const SAME: Readonly<Record<string, readonly string[]>> = {
  "a German word, too": [
    "Filter",
    "Limit",
    "Limits",
    "Live",
    "Name",
    "Problem",
    "Server",
    "Status",
    "System",
    "Webhooks",
  ],
  "a technical name": ["Base64", "Base64url", "JWT", "RPC", "URL", "webhook-id"],
  "an example of what is entered": ["1m, 24h", "monthly", "requests"],
};

test("a text is the same in both languages only for a reason", async () => {
  const same: Text[] = [];
  for (const { en, de } of await Promise.all(CATALOGUES.map(load)))
    for (const [name, text] of en) if (text === de.get(name)) same.push(text);
  expect([...new Set(same)].sort()).toEqual(Object.values(SAME).flat().sort());
});

/** Returns the types of the parameters of functions, by the names of the functions. */
function parametersOf(path: string): ReadonlyMap<string, readonly string[]> {
  const types = new Map<string, readonly string[]>();
  const textOf = ({ start, end }: ESTree.Span) => SOURCES.get(path)?.slice(start, end) ?? "";
  visit(path, {
    Property: ({ key, value }) => {
      if (key.type === "Identifier" && value.type === "ArrowFunctionExpression")
        types.set(
          key.name,
          value.params.map((parameter) => textOf(parameter).replace(/^\w+: /, "")),
        );
    },
  });
  return types;
}

test("a text with arguments mentions them, numbers in the form of the language", async () => {
  const problems: string[] = [];
  for (const path of CATALOGUES) {
    const types = parametersOf(path);
    for (const [language, texts] of Object.entries(await load(path))) {
      for (const [name, text] of texts) {
        if (typeof text === "string") continue;
        const args: unknown[] = (types.get(name.replace(/.*\./, "")) ?? []).map((type, position) =>
          type === "number" ? 1_234 + position : type === "boolean" ? true : `argument${position}`,
        );
        const said = text(...args);
        const isMentioned = (arg: unknown, position: number) =>
          typeof arg === "boolean"
            ? text(...args.with(position, false)) !== said
            : said.includes(String(arg)) || said.includes(Number(arg).toLocaleString(language));
        if (args.length !== text.length || args.length === 0 || !args.every(isMentioned))
          problems.push(`${path} ${name}: ${said}`);
      }
    }
  }
  expect(problems).toEqual([]);
});

/** What components contain without a translation. */
const LITERALS: readonly string[] = [
  "Keyhold",
  // The names of fields of rows.
  "metadata.",
];

/** Attributes and members that are shown, or read by screen readers. */
const READ: readonly string[] = [
  ...["alt", "aria-description", "aria-label", "description", "header"],
  ...["label", "legend", "placeholder", "title"],
];

/** Returns the literal texts that a node may evaluate to. */
function literalsOf(node: ESTree.JSXChild | ESTree.JSXAttributeValue | ESTree.JSXExpression | null): string[] {
  switch (node?.type) {
    case "JSXText":
    case "Literal":
      return typeof node.value === "string" ? [node.value] : [];
    case "TemplateLiteral":
      return node.quasis.map(({ value }) => value.raw);
    case "JSXExpressionContainer":
      return literalsOf(node.expression);
    case "ConditionalExpression":
      return [node.consequent, node.alternate].flatMap(literalsOf);
    case "LogicalExpression":
      return [node.left, node.right].flatMap(literalsOf);
    default:
      return [];
  }
}

test("components take what people read from the catalogues", () => {
  const found = paths(/\.tsx$/).flatMap((path) => {
    const literals: string[] = [];
    visit(path, {
      JSXElement: ({ children }) => literals.push(...children.flatMap(literalsOf)),
      JSXFragment: ({ children }) => literals.push(...children.flatMap(literalsOf)),
      JSXAttribute: ({ name, value }) => {
        if (READ.includes(String(name.name))) literals.push(...literalsOf(value));
      },
      Property: ({ key, value }) => {
        if (key.type === "Identifier" && READ.includes(key.name))
          literals.push(...literalsOf(value as ESTree.Expression));
      },
    });
    return literals.map((text) => text.trim());
  });
  expect([...new Set(found)].filter((text) => /\p{L}/u.test(text)).sort()).toEqual([...LITERALS].sort());
});

test("no file of a page, or of a part of pages, has more than 200 lines", () => {
  const lines = (path: string) => SOURCES.get(path)?.trimEnd().split("\n").length ?? 0;
  expect(paths(/^console\/(?:pages|parts)\//).filter((path) => lines(path) > 200)).toEqual([]);
});

test("only the begin and the end of a session call the server without a stub", () => {
  const callers = paths(/./).filter((path) =>
    /\b(?:fetch|XMLHttpRequest|EventSource|WebSocket)\(/.test(SOURCES.get(path) ?? ""),
  );
  expect(callers).toEqual(["console/session/session-request.ts"]);
});

/** Rules that both the server and the console apply. */
const SHARED = [
  ...["cli/import/csv", "cli/import/fields", "cli/import/records", "cli/import/row-request", "cli/import/send"],
  ...["credential/header-form", "domain/errors", "domain/expiry", "domain/principal", "keys/authorization"],
  ...["keys/raw-key-rules", "lib/redact-name"],
].map((module) => `src/${module}.ts`);

/** Returns what a module imports: the paths of files, and the names of packages. `withTypes`: also what is erased. */
function importsOf(path: string, withTypes: boolean): string[] {
  const { staticImports, staticExports } = parseSync(path, readFileSync(join(ROOT, path), "utf8")).module;
  const names = [
    ...staticImports
      .filter(({ entries }) => withTypes || entries.length === 0 || entries.some(({ isType }) => !isType))
      .map(({ moduleRequest }) => moduleRequest.value),
    ...staticExports.flatMap(({ entries }) => entries.flatMap(({ moduleRequest }) => moduleRequest?.value ?? [])),
  ];
  return names.map((name) => (name.startsWith(".") ? relative(ROOT, resolve(ROOT, path, "..", name)) : name));
}

test("the console shares only these files with the server, and they need nothing of Node.js", () => {
  const isServers = (path: string) => path.startsWith("src/");
  const imported = new Set([...SOURCES.keys()].flatMap((path) => importsOf(path, true).filter(isServers)));
  expect([...imported].sort()).toEqual(SHARED);
  const loaded = new Set([...SOURCES.keys()].flatMap((path) => importsOf(path, false).filter(isServers)));
  // A set has also what is added while it is walked through.
  for (const path of loaded)
    for (const name of importsOf(path, false)) {
      if (isServers(name)) loaded.add(name);
      else expect(name, `${path} imports it`).not.toMatch(/^node:/);
    }
});
