import { join, resolve } from "node:path";

/** `npm ci` runs this: builds the console into console/dist, from where the server serves it. */
const folder = resolve(import.meta.dirname, "../../console");

// What runs this may have set it to `test`, and React would be three times as large.
process.env.NODE_ENV = "production";

// Without development dependencies, as in `npm ci --omit=dev`, there is nothing to build it with.
const vite = await import("vite").catch((error: NodeJS.ErrnoException) => {
  if (error.code === "ERR_MODULE_NOT_FOUND") return null;
  throw error;
});
if (vite === null) process.stderr.write("the console is not built: the development dependencies are not installed\n");
else await vite.build({ configFile: join(folder, "vite.config.ts"), logLevel: "warn" });
