#!/usr/bin/env node
import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

// The one file in JavaScript: Node loads its TypeScript compiler for the first file that is not in the cache, which takes
// longer than all else that help and mistakes need. The cache stands beside the dependencies, so that whoever may write it
// may write the code as well; a shared folder for temporary files would let others plant code. Where it cannot be written
// there is none, and all goes on without.
enableCompileCache(fileURLToPath(new URL("../../node_modules/.cache/keyhold", import.meta.url)));

await import("./main.ts");
