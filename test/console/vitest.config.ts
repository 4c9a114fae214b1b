import { defineConfig } from "vitest/config";

/**
 * `npm run check:console` drives the console in Chromium, which the machine must have. `npm ci` has built the console.
 *
 * KEYHOLD_CONSOLE_EXCEPT  files that it leaves out, separated by commas
 * KEYHOLD_CONSOLE_EVERY   of callers with different rights, only every so many; default 1: all
 */
export default defineConfig({
  test: {
    root: new URL("../..", import.meta.url).pathname,
    include: ["test/console/*.check.ts"],
    exclude: process.env.KEYHOLD_CONSOLE_EXCEPT?.split(",") ?? [],
    globalSetup: ["test/support/global-setup.ts"],
    isolate: false,
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
  },
});
