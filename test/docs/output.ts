import { expect } from "vitest";

/**
 * Compares the output of a block with that on its page. JSON is compared as a value, so that a page may break its lines; other
 * text by lines, without trailing blanks. A time matches any time and a UUID any UUID, in JSON also a time in seconds; `…` matches
 * anything.
 */
export function expectOutput(actual: string, shown: string, info: string): void {
  if (info.startsWith("json")) expectJson(actual, shown);
  else expectLines(actual, shown);
}

function expectJson(actual: string, shown: string): void {
  const value: unknown = parse(actual);
  expect(value).toEqual(likeShown(JSON.parse(shown)));
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`the block printed no JSON: ${text}`);
  }
}

/** In seconds since the epoch. No other number on a page is as large. */
const YEAR_2020 = 1_577_836_800;

function likeShown(shown: unknown): unknown {
  if (typeof shown === "string") return expect.stringMatching(patternOf(shown));
  if (typeof shown === "number" && shown > YEAR_2020) return expect.toSatisfy((value) => value > YEAR_2020);
  if (Array.isArray(shown)) return shown.map(likeShown);
  if (shown === null || typeof shown !== "object") return shown;
  return Object.fromEntries(Object.entries(shown).map(([name, value]) => [name, likeShown(value)]));
}

function expectLines(actual: string, shown: string): void {
  const lines = (text: string) =>
    text
      .trim()
      .split("\n")
      .map((line) => line.trimEnd());
  expect(lines(actual)).toEqual(lines(shown).map((line) => expect.stringMatching(patternOf(line))));
}

const UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
const TIME = "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(?:\\.\\d+)?Z";
const VARIABLE = new RegExp(`(${UUID}|${TIME}|…)`);

/** Returns a pattern for texts that differ from the given one only in variable parts. */
function patternOf(shown: string): RegExp {
  const parts = shown.split(VARIABLE).map((part) => {
    if (part === "…") return ".+";
    if (new RegExp(`^${UUID}$`).test(part)) return UUID;
    if (new RegExp(`^${TIME}$`).test(part)) return TIME;
    return RegExp.escape(part);
  });
  return new RegExp(`^${parts.join("")}$`, "s");
}
