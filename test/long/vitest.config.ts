import { defineConfig, mergeConfig } from "vitest/config";
import base, { LONG_TESTS, MAX_WORKERS } from "../../vitest.config.ts";

/**
 * `npm run test:long` runs what `npm test` leaves out.
 *
 * KEYHOLD_LONG_EXCEPT  files that it leaves out, too, separated by commas
 */
const { include: _, exclude: __, ...test } = base.test ?? {};

export default mergeConfig(
  { ...base, test },
  // They wait more than those of `npm test`: one worker more than there.
  defineConfig({
    test: {
      root: new URL("../..", import.meta.url).pathname,
      include: LONG_TESTS,
      exclude: process.env.KEYHOLD_LONG_EXCEPT?.split(",") ?? [],
      maxWorkers: MAX_WORKERS + 1,
    },
  }),
);
