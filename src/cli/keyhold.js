#!/usr/bin/env node
// The one file in JavaScript: Node loads its TypeScript compiler for the first file that is not in the cache, which takes
// longer than all else that help and mistakes need. It has no static import and no top-level await, so that an old Node can parse it
// and name the version that is needed: the lower bound of `engines` in package.json.
const NEEDED = 24;

async function launch() {
  const { existsSync } = await import("node:fs");
  const { enableCompileCache } = await import("node:module");
  const { fileURLToPath } = await import("node:url");
  // The cache stands beside the dependencies, so that whoever may write it may write the code as well; a shared folder for
  // temporary files would let others plant code. Where it cannot be written there is none, and all goes on without.
  enableCompileCache(fileURLToPath(new URL("../../node_modules/.cache/keyhold", import.meta.url)));
  // The published package has the compiled program in place of the source: Node runs no TypeScript below node_modules.
  const source = new URL("./main.ts", import.meta.url);
  await import(existsSync(source) ? source.href : new URL("../../dist/cli/main.js", import.meta.url).href);
}

if (Number(process.versions.node.split(".")[0]) < NEEDED) {
  console.error(
    `keyhold: Node.js ${NEEDED} or later is required; this is ${process.versions.node} (${process.execPath}). ` +
      "Run `npx keyhold` in a folder with the npm package node (`npm install node`), or install Node.js from https://nodejs.org",
  );
  process.exitCode = 1;
} else {
  launch();
}
