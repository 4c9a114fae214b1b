import { describe, test } from "vitest";
import { checkPage, LONG_PAGES, usePages } from "./run-pages.ts";

const pages = usePages((name) => LONG_PAGES.includes(name));

describe("every block prints what its page shows", { concurrent: true, timeout: 300_000 }, () => {
  test.for(pages)("$name", checkPage);
});
