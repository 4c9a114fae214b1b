import { writeFileSync } from "node:fs";
import { readComments } from "./comments.ts";
import { openApiDocument } from "./document.ts";

/** Writes docs/openapi.json, by `npm run generate`. */
const file = new URL("../../docs/openapi.json", import.meta.url);
writeFileSync(file, `${JSON.stringify(openApiDocument(readComments()), null, 2)}\n`);
