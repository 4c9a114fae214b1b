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

/** Sends files of the installation, each with its type and its ETag. */
export class Files {
  /**
   * Kept once read. A stream of its own for each request would be a file descriptor that a client holds by not reading, and 2 MB are the
   * same for all.
   */
  readonly #files = new Map<string, Promise<File>>();

  /** Answers 304 where the caller has the file. `maxAge` in seconds. */
  async send(request: FastifyRequest, reply: FastifyReply, path: string, maxAge: number): Promise<FastifyReply> {
    const { bytes, etag, type } = await this.#read(path);
    reply.headers({ etag, "cache-control": `public, max-age=${maxAge}`, "x-content-type-options": "nosniff" });
    if (isKnown(request.method, etag, request.headers["if-none-match"])) return reply.code(304).send();
    return reply.type(type).send(bytes);
  }

  #read(path: string): Promise<File> {
    const reading = this.#files.get(path) ?? readWhole(path);
    this.#files.set(path, reading);
    reading.catch(() => this.#files.delete(path));
    return reading;
  }
}

async function readWhole(path: string): Promise<File> {
  const bytes = await readFile(path);
  const etag = `"${createHash("sha256").update(bytes).digest("base64url")}"`;
  return { bytes, etag, type: TYPES[extname(path)] ?? "application/octet-stream" };
}
