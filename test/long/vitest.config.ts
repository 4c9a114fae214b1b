import { defineConfig, mergeConfig } from "vitest/config";
import base, { LONG_TESTS } from "../../vitest.config.ts";

/**
 * `npm run test:long` runs what `npm test` leaves out.
 *
 * KEYHOLD_LONG_EXCEPT  files that it leaves out, too, separated by commas
 */
const { include: _, exclude: __, ...test } = base.test ?? {};

export default mergeConfig(
  { ...base, test },
  defineConfig({
    test: {
      root: new URL("../..", import.meta.url).pathname,
      include: LONG_TESTS,
      exclude: process.env.KEYHOLD_LONG_EXCEPT?.split(",") ?? [],
    },
  }),
);
