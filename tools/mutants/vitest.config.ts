import { defineConfig } from "vitest/config";
import base from "../../vitest.config.ts";

/** All tests, long ones too. */
const { exclude: _, ...test } = base.test ?? {};

export default defineConfig({ ...base, test: { ...test, root: new URL("../..", import.meta.url).pathname } });
