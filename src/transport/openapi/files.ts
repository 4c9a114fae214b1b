import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import type { FastifyReply, FastifyRequest } from "fastify";
import { isKnown } from "../rest/response.ts";

interface File {
  readonly bytes: Buffer;
  readonly etag: string;
  readonly type: string;
}

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".js": "application/javascript; charset=utf-8",
  ".json": "application/json; charset=utf-8",
  ".png": "image/png",
};

/**
 * Kept once read. A stream of its own for each request would be a file descriptor that a client holds by not reading, and 2 MB are the
 * same for all.
 */
const files = new Map<string, Promise<File>>();

/** Sends a file of the installation with its type and its ETag, or 304 where the caller has it. `maxAge` in seconds. */
export async function sendFile(request: FastifyRequest, reply: FastifyReply, path: string, maxAge: number) {
  const reading = files.get(path) ?? readWhole(path);
  files.set(path, reading);
  reading.catch(() => files.delete(path));
  const { bytes, etag, type } = await reading;
  reply.headers({ etag, "cache-control": `public, max-age=${maxAge}`, "x-content-type-options": "nosniff" });
  if (isKnown(request.method, etag, request.headers["if-none-match"])) return reply.code(304).send();
  return reply.type(type).send(bytes);
}

async function readWhole(path: string): Promise<File> {
  const bytes = await readFile(path);
  const etag = `"${createHash("sha256").update(bytes).digest("base64url")}"`;
  return { bytes, etag, type: TYPES[extname(path)] ?? "application/octet-stream" };
}
