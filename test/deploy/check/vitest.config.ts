import { defineConfig } from "vitest/config";

/** `npm run check:deploy`: what stands in deploy/, by the programs that it is written for. They are installed at the first run. */
export default defineConfig({
  test: {
    root: new URL("../../..", import.meta.url).pathname,
    include: ["test/deploy/check/*.check.ts"],
    globalSetup: ["test/support/global-setup.ts"],
    isolate: false,
    fileParallelism: false,
    testTimeout: 60_000,
    // Helm is compiled at the first run.
    hookTimeout: 600_000,
  },
});
