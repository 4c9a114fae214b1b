import { execFileSync } from "node:child_process";
import {
  type AnyDesc,
  createFileRegistry,
  type DescEnum,
  type DescExtension,
  type DescMessage,
  type DescService,
  type FileRegistry,
  fromBinary,
} from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { getComments } from "@bufbuild/protoplugin";

/** The comment above a declaration of a proto, in one paragraph; empty where there is none. */
export type CommentOf = (desc: AnyDesc) => string;

const MAX_BYTES = 16 * 1024 * 1024;

/** The comments of our protos. Generated code has none, so buf reads the protos again. */
export function readComments(): CommentOf {
  const bytes = execFileSync("buf", ["build", "--path", "proto/keyhold", "--output", "-"], { maxBuffer: MAX_BYTES });
  const comments = collect(createFileRegistry(fromBinary(FileDescriptorSetSchema, bytes)));
  return (desc) => comments.get(String(desc)) ?? "";
}

/** By what a descriptor says of itself, such as `rpc keyhold.v2alpha1.ApiKeysService.VerifyApiKey`. */
function collect(registry: FileRegistry): ReadonlyMap<string, string> {
  const comments = new Map<string, string>();
  for (const file of registry.files) {
    for (const type of nestedTypes(file)) {
      for (const desc of [type, ...membersOf(type)]) comments.set(String(desc), textOf(desc));
    }
  }
  return comments;
}

type Type = DescMessage | DescEnum | DescExtension | DescService;
type Commented = Parameters<typeof getComments>[0];

function membersOf(type: Type): readonly Commented[] {
  if (type.kind === "message") return type.fields;
  if (type.kind === "service") return type.methods;
  return type.kind === "enum" ? type.values : [];
}

function textOf(desc: Commented): string {
  return (getComments(desc).leading ?? "").replaceAll(/\s*\n\s*/g, " ").trim();
}
