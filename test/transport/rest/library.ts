import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import {
  createFileRegistry,
  type DescMessage,
  type DescMethodUnary,
  type FileRegistry,
  fromBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { unaryMethodsOf } from "./server.ts";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const googleApi = ["google/api/annotations.proto", "google/api/http.proto"];

const ownProtos = ["library.proto", "broken.proto"];

/** The protos of this folder, compiled by buf. */
export async function compileLibrary(): Promise<FileRegistry> {
  const folder = await mkdtemp(join(tmpdir(), "keyhold-library-"));
  try {
    await mkdir(join(folder, "google/api"), { recursive: true });
    for (const file of ownProtos) await copyFile(fileURLToPath(new URL(file, import.meta.url)), join(folder, file));
    for (const file of googleApi)
      await copyFile(join(root, "node_modules/google-proto-files", file), join(folder, file));
    await writeFile(join(folder, "buf.yaml"), "version: v2\n");
    const args = ["build", "--exclude-source-info", "-o", "library.binpb"];
    await promisify(execFile)(join(root, "node_modules/.bin/buf"), args, { cwd: folder });
    return createFileRegistry(fromBinary(FileDescriptorSetSchema, await readFile(join(folder, "library.binpb"))));
  } finally {
    await rm(folder, { recursive: true });
  }
}

export function messageOf(registry: FileRegistry, name: string): DescMessage {
  const desc = registry.getMessage(`keyhold.test.library.${name}`);
  if (desc === undefined) throw new Error(`library.proto has no message ${name}`);
  return desc;
}

export function methodsOf(registry: FileRegistry, name = "Library"): readonly DescMethodUnary[] {
  const service = registry.getService(`keyhold.test.library.${name}`);
  return service === undefined ? [] : unaryMethodsOf(service);
}
