#!/usr/bin/env node
// The only JavaScript file. Node loads its TypeScript compiler for the first file missing from the compile cache, which dominates the time
// of help and usage errors. Without static imports and top-level await an old Node can parse this file and print the required version: the
// lower bound of `engines` in package.json.
const NEEDED = "24.7";

async function launch() {
  const { existsSync } = await import("node:fs");
  const { enableCompileCache } = await import("node:module");
  const { fileURLToPath } = await import("node:url");
  // The cache is next to the dependencies: who can write it can write the code too. In a shared temporary folder others could plant code.
  // If it is not writable, Node runs without a cache.
  enableCompileCache(fileURLToPath(new URL("../../node_modules/.cache/keyhold", import.meta.url)));
  // The published package has the compiled program: Node does not run TypeScript below node_modules.
  const source = new URL("./main.ts", import.meta.url);
  await import(existsSync(source) ? source.href : new URL("../../dist/cli/main.js", import.meta.url).href);
}

function isOlder(version, needed) {
  const [major, minor] = version.split(".").map(Number);
  const [neededMajor, neededMinor] = needed.split(".").map(Number);
  return major < neededMajor || (major === neededMajor && minor < neededMinor);
}

if (isOlder(process.versions.node, NEEDED)) {
  console.error(
    `keyhold: Node.js ${NEEDED} or later is required; this is ${process.versions.node} (${process.execPath}). ` +
      "Run `npx keyhold` in a folder with the npm package node (`npm install node`), or install Node.js from https://nodejs.org",
  );
  process.exitCode = 1;
} else {
  launch();
}
