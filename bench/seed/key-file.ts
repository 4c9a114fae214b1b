import { randomBytes } from "node:crypto";
import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

/** Writes a file of keys for `keyhold keys import`: `node bench/seed/key-file.ts keys.jsonl 1000000`. */
const [, , path = "keys.jsonl", count = "1000000"] = process.argv;

/** Rows per write. */
const BLOCK = 1000;

function* blocks() {
  for (let from = 1; from <= Number(count); from += BLOCK) {
    const rows = Array.from({ length: Math.min(BLOCK, Number(count) - from + 1) }, (_, index) => lineOf(from + index));
    yield rows.join("");
  }
}

function lineOf(row: number): string {
  const raw_key = `sk_live_${randomBytes(24).toString("base64url")}`;
  const metadata = { env: "prod" };
  const fields = { raw_key, name: `key ${row}`, actor_id: `team_${row % 5000}`, scopes: ["read", "write"], metadata };
  return `${JSON.stringify(fields)}\n`;
}

await pipeline(Readable.from(blocks()), createWriteStream(path));
