import { hash } from "node:crypto";
import { readFile } from "node:fs/promises";

/** A file that does not change while the process runs. */
export class StaticFile {
  readonly #url: URL;
  readonly #edit: ((text: string) => string) | undefined;
  /** In memory from the first use. A stream per request would hold a file descriptor for a client that does not read. */
  #reading: Promise<{ readonly bytes: Buffer; readonly etag: string }> | undefined;

  /** `edit` changes the text of the file before it is served. */
  constructor(url: URL, edit?: (text: string) => string) {
    this.#url = url;
    this.#edit = edit;
  }

  /** Returns the content with its ETag. Rejects if the file cannot be read; the next call tries again. */
  async read() {
    this.#reading ??= readWhole(this.#url, this.#edit);
    try {
      return await this.#reading;
    } catch (error) {
      this.#reading = undefined;
      throw error;
    }
  }
}

async function readWhole(url: URL, edit?: (text: string) => string) {
  const content = await readFile(url);
  const bytes = edit === undefined ? content : Buffer.from(edit(content.toString("utf8")));
  return { bytes, etag: `"${hash("sha256", bytes, "base64url")}"` };
}

/** Returns whether the client already has the response with this `etag`, by its If-None-Match. */
export function isUnchanged(method: string, etag: unknown, ifNoneMatch: string | undefined): boolean {
  if (typeof etag !== "string" || ifNoneMatch === undefined || (method !== "GET" && method !== "HEAD")) return false;
  // If-None-Match compares weakly (RFC 9110 §8.8.3.2).
  const [wanted, ...tags] = [etag, ...ifNoneMatch.split(",")].map((tag) => tag.trim().replace(/^W\/(?=")/, ""));
  return tags.some((tag) => tag === "*" || tag === wanted);
}
