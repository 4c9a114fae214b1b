import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type ESTree, parseSync, Visitor } from "vite";
import { expect, test } from "vitest";
import { ROOT } from "./blocks.ts";

const SRC = join(ROOT, "src");

/** The readers of the messages of each folder. Arguments of a logger are for operators everywhere. */
const CLIENTS = "Clients of the API and of the libraries";
const OPERATORS = "Operators: logs, startup, metrics";
const USERS = "Users of the command";
const READERS: Readonly<Record<string, string>> = {
  cli: USERS,
  client: USERS,
  cluster: OPERATORS,
  "embedded-postgres": OPERATORS,
  observability: OPERATORS,
  server: OPERATORS,
};

const SKIPPED = /^(?:cli\/completion|token\/jwt\/registered-claims|transport\/services\/openapi)/;
const PHRASE = /[A-Za-z]{2,}[,;:]? ["`(]?[A-Za-z]/;
/** SQL, a shell script or the value of a header. */
const NO_MESSAGE =
  /^(?:-- |[(] SELECT |(?:SELECT|SET|DO|CREATE|GRANT|REVOKE|INSERT) [A-Z$]|BEGIN; |SET LOCAL|SELECT (?:pg_|set_config)|for dir|exec |(?:application|text)\/|(?:Basic|Bearer) realm|Connection: |public, |keyhold [a-z]+$|no side effects$)/;
/** A field or an error code, but no level of a log. */
const SUBJECT = /^(?!(?:info|warn)$)[A-Za-z][\w.]*$/;

/** Adds messages by reader: literals of at least two words, with `…` for a value and, if it is a literal, the field or code before it. */
function readScript(file: string, add: (reader: string, message: string) => void) {
  const subjects = new Map<unknown, string>();
  const logged = new Set<unknown>();
  const skipped = new Set<unknown>();
  const addText = (node: ESTree.Node, text: string) => {
    const subject = subjects.get(node);
    const reader = logged.has(node) ? OPERATORS : (READERS[file.split("/")[0] ?? ""] ?? CLIENTS);
    if (!skipped.has(node) && PHRASE.test(text)) add(reader, subject === undefined ? text : `${subject}: ${text}`);
  };
  const readArguments = ({ callee, arguments: values }: ESTree.CallExpression | ESTree.NewExpression) => {
    const isLog = isLogger(callee) || (callee.type === "MemberExpression" && isLogger(callee.object));
    let subject: string | undefined;
    for (const value of values) {
      if (isLog) logged.add(value);
      if (subject !== undefined) subjects.set(value, subject);
      if (value.type === "Literal" && SUBJECT.test(String(value.value))) subject = String(value.value);
    }
  };
  new Visitor({
    CallExpression: readArguments,
    NewExpression: readArguments,
    TaggedTemplateExpression: ({ quasi }) => void skipped.add(quasi),
    TemplateLiteral: (template) => addText(template, template.quasis.map(({ value }) => value.cooked).join("…")),
    Literal: (literal) => {
      if (typeof literal.value === "string") addText(literal, literal.value);
    },
  }).visit(parseSync(file, readFileSync(join(SRC, file), "utf8")).program);
}

function isLogger(node: ESTree.Node): boolean {
  if (node.type === "MemberExpression") return isLogger(node.property);
  return "name" in node && /^(?:log|logger)$/.test(String(node.name));
}

/** Adds the messages that triggers raise. */
function readMigration(file: string, add: (reader: string, message: string) => void) {
  const sql = readFileSync(join(SRC, file), "utf8");
  for (const [, text = ""] of sql.matchAll(/(?:RAISE EXCEPTION|THEN|ELSE format\() *'([^']* [^']+)'/g))
    add(CLIENTS, text.replaceAll(/%s?/g, "…"));
}

test("the table of messages is the one that was read", async () => {
  const table = new Map([CLIENTS, OPERATORS, USERS].map((reader) => [reader, new Map<string, Set<string>>()]));
  for (const file of globSync("**/*.{ts,sql}", { cwd: SRC }).sort()) {
    const folder = dirname(file);
    const add = (reader: string, message: string) => {
      const text = message.replaceAll(/\s+/g, " ").trim();
      const folders = table.get(reader);
      if (!NO_MESSAGE.test(text)) folders?.set(folder, (folders.get(folder) ?? new Set()).add(text));
    };
    if (file.endsWith(".sql")) readMigration(file, add);
    else if (!SKIPPED.test(file)) readScript(file, add);
  }
  const sections = [...table].map(([reader, folders]) => {
    const parts = [...folders]
      .sort()
      .map(([folder, messages]) => `${[folder, ...[...messages].sort()].join("\n  ")}\n`);
    return [reader, "=".repeat(reader.length), "", ...parts].join("\n");
  });
  // Read a changed message as someone who has not seen the code; then `vitest run test/docs/messages.test.ts --update`.
  await expect(sections.join("\n")).toMatchFileSnapshot("messages.txt");
});
