import { defineConfig } from "vitest/config";

/** `npm run check:deploy` tests deploy/ with the programs it is written for, which the first run installs. */
export default defineConfig({
  test: {
    root: new URL("../../..", import.meta.url).pathname,
    include: ["test/deploy/check/*.check.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    isolate: false,
    fileParallelism: false,
    testTimeout: 60_000,
    // The first run compiles Helm.
    hookTimeout: 600_000,
  },
});
