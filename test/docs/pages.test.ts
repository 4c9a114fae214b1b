import { describe, expect, test } from "vitest";
import { readPages } from "./blocks.ts";
import { checkPage, isNotRun, LONG_PAGES, NOT_RUN, usePages } from "./run-pages.ts";

const pages = usePages((name) => !LONG_PAGES.includes(name));

describe("every block prints what its page shows", { concurrent: true, timeout: 300_000 }, () => {
  test.for(pages)("$name", checkPage);
});

test("each excluded block exists", () => {
  const leftOut = readPages().flatMap(({ blocks }) => blocks.filter(isNotRun));
  expect(leftOut).toHaveLength(Object.keys(NOT_RUN).length);
});

test("each page that is left to the long tests exists", () => {
  expect(readPages().map(({ name }) => name)).toEqual(expect.arrayContaining([...LONG_PAGES]));
});
