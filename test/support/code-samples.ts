import { mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { operations } from "../transport/openapi/document.ts";
import type { Json } from "./rest.ts";

/** A code sample of an operation. */
export interface CodeSample {
  readonly operationId: string;
  readonly lang: string;
  readonly source: string;
}

/** The code samples of the OpenAPI document. */
export const codeSamples: readonly CodeSample[] = operations.flatMap(({ operation }) =>
  operation["x-codeSamples"].map(({ lang, source }: Json) => ({ operationId: operation.operationId, lang, source })),
);

/** The operations whose samples are run, on any server, in this order, with what they print: a body in JSON, a query, a form, nothing. */
export const EXECUTED: readonly (readonly [operationId: string, output: RegExp])[] = [
  ["IssuedApiKeysService_CreateIssuedApiKey", /kh_v1_/],
  ["IssuedApiKeysService_ListIssuedApiKeys", /deploy bot/],
  ["Introspection_Introspect", /"?active"?: ?false/],
  ["CallersService_WhoAmI", /CallersService\/WhoAmI/],
];

/** Calls `body` with a folder that has a file for each sample, in which packages are those of this project. */
export async function withSampleFiles<T>(
  samples: readonly CodeSample[],
  nameOf: (sample: CodeSample) => string,
  body: (dir: string) => Promise<T>,
  server?: string,
): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), "keyhold-samples-"));
  try {
    await symlink(resolve(import.meta.dirname, "../../node_modules"), join(dir, "node_modules"));
    await writeFile(join(dir, "package.json"), '{"type":"module"}');
    for (const sample of samples) {
      const { source } = sample;
      const text = server === undefined ? source : source.replaceAll("http://127.0.0.1:4420", server);
      await writeFile(join(dir, nameOf(sample)), `${text}\n`);
    }
    return await body(dir);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
