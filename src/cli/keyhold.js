#!/usr/bin/env node
import { existsSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

// The one file in JavaScript: Node loads its TypeScript compiler for the first file that is not in the cache, which takes
// longer than all else that help and mistakes need. The cache stands beside the dependencies, so that whoever may write it
// may write the code as well; a shared folder for temporary files would let others plant code. Where it cannot be written
// there is none, and all goes on without.
enableCompileCache(fileURLToPath(new URL("../../node_modules/.cache/keyhold", import.meta.url)));

// The published package has the compiled program in place of the source: Node runs no TypeScript below node_modules.
const source = new URL("./main.ts", import.meta.url);
await import(existsSync(source) ? source.href : new URL("../../dist/cli/main.js", import.meta.url).href);
