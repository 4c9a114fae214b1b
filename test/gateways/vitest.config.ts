import { defineConfig } from "vitest/config";

/** `npm run check:gateways` runs deploy/gateways/ with the programs it is written for, which the first run installs. */
export default defineConfig({
  test: {
    root: new URL("../..", import.meta.url).pathname,
    include: ["test/gateways/*.check.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    isolate: false,
    fileParallelism: false,
    retry: Number(process.env.KEYHOLD_TEST_RETRIES ?? 0),
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
