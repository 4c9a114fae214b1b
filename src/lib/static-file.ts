import { hash } from "node:crypto";
import { readFile } from "node:fs/promises";

/** A file that does not change while the process runs. */
export class StaticFile {
  readonly #url: URL;
  /** In memory from the first use. A stream per request would hold a file descriptor for a client that does not read. */
  #reading: Promise<{ readonly bytes: Buffer; readonly etag: string }> | undefined;

  constructor(url: URL) {
    this.#url = url;
  }

  /** Returns the content with its ETag. Rejects if the file cannot be read; the next call tries again. */
  async read() {
    this.#reading ??= readWhole(this.#url);
    try {
      return await this.#reading;
    } catch (error) {
      this.#reading = undefined;
      throw error;
    }
  }
}

async function readWhole(url: URL) {
  const bytes = await readFile(url);
  return { bytes, etag: `"${hash("sha256", bytes, "base64url")}"` };
}

/** Returns whether the client already has the response with this `etag`, by its If-None-Match. */
export function isUnchanged(method: string, etag: unknown, ifNoneMatch: string | undefined): boolean {
  if (typeof etag !== "string" || ifNoneMatch === undefined || (method !== "GET" && method !== "HEAD")) return false;
  // If-None-Match compares weakly (RFC 9110 §8.8.3.2).
  const [wanted, ...tags] = [etag, ...ifNoneMatch.split(",")].map((tag) => tag.trim().replace(/^W\/(?=")/, ""));
  return tags.some((tag) => tag === "*" || tag === wanted);
}
