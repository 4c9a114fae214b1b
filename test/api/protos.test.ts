import { execFileSync } from "node:child_process";
import { cp, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { createFileRegistry, equals, fromBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { file_buf_validate_validate as original } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { expect, inject, test } from "vitest";
import { file_buf_validate_validate as ours } from "../../gen/buf/validate/validate_pb.js";
import { SERVICES } from "../../src/api/v2alpha1/rpcs.ts";

const ROOT = resolve(import.meta.dirname, "../..");

const filesOf = (bytes: Uint8Array) => fromBinary(FileDescriptorSetSchema, bytes).file;
const readShipped = async () => filesOf(await readFile(join(ROOT, "gen/keyhold.binpb")));

function byName(files: readonly FileDescriptorProto[]): Map<string, FileDescriptorProto> {
  return new Map(files.map((file) => [file.name, file]));
}

test("validate.proto is the original of protovalidate", () => {
  expect(equals(FileDescriptorProtoSchema, ours.proto, original.proto)).toBe(true);
});

/** Those of the descriptor set and what they import. The proto of ext_authz is for the server alone. */
const OURS = ["keyhold", "google/rpc"].flatMap((path) => ["--path", path]);

test("proto/ compiles alone, to the files of the descriptor set", async () => {
  const folder = join(inject("testDir"), "proto");
  await cp(join(ROOT, "proto"), folder, { recursive: true });
  const buf = join(ROOT, "node_modules/.bin/buf");
  const build = (...paths: string[]) =>
    byName(filesOf(execFileSync(buf, ["build", "--as-file-descriptor-set", ...paths, "-o", "-"], { cwd: folder })));
  expect([...build().keys()]).toContain("envoy/service/auth/v3/ext_authz.proto");
  const built = build(...OURS);
  const shipped = byName(await readShipped());
  expect([...shipped.keys()].sort()).toEqual([...built.keys()].sort());
  for (const [name, file] of shipped) {
    expect(equals(FileDescriptorProtoSchema, file, built.get(name) ?? expect.fail(name)), name).toBe(true);
  }
});

test("the descriptor set has all services, imports before their importers, and comments", async () => {
  const files = await readShipped();
  const registry = createFileRegistry(
    fromBinary(FileDescriptorSetSchema, await readFile(join(ROOT, "gen/keyhold.binpb"))),
  );
  expect(SERVICES.every(({ typeName }) => registry.getService(typeName) !== undefined)).toBe(true);
  const seen = new Set<string>();
  for (const { name, dependency, sourceCodeInfo } of files) {
    expect(dependency.filter((one) => !seen.has(one))).toEqual([]);
    expect(sourceCodeInfo?.location.length).toBeGreaterThan(0);
    seen.add(name);
  }
  const comments = files.flatMap(({ sourceCodeInfo }) => sourceCodeInfo?.location ?? []);
  expect(comments.map(({ leadingComments }) => leadingComments)).toContain(
    " ApiKeysService verifies credentials, derives tokens, and lists, revokes and disables keys of both kinds.\n",
  );
});
