import { copyFileSync, globSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

/** Writes the protos of others into `proto/` (part of `npm run generate`), so that it compiles with no other folder. */

const root = resolve(import.meta.dirname, "../..");
const ENVOY = "@grpc/grpc-js-xds/deps";

/** By the folder in node_modules that has them. */
const FILES: Readonly<Record<string, string>> = {
  // The imports of our protos, and the error details in our responses.
  "google-proto-files":
    "google/{api/{annotations,client,field_behavior,http,launch_stage},rpc/{code,error_details,status}}.proto",
  // Envoy's ext_authz and all its imports. Their folders have files that import what the package does not have, so they are no module
  // of buf.yaml.
  [`${ENVOY}/envoy-api`]:
    "envoy/{annotations/deprecation,config/core/v3/{address,backoff,base,extension,http_uri,socket_option},service/auth/v3/*,type/v3/{http_status,percent,semantic_version}}.proto",
  [`${ENVOY}/xds`]:
    "{udpa/annotations/{migrate,status,versioning},xds/{annotations/v3/status,core/v3/context_params}}.proto",
  [`${ENVOY}/protoc-gen-validate`]: "validate/validate.proto",
};

for (const folder of ["envoy", "google", "udpa", "validate", "xds"]) {
  rmSync(join(root, "proto", folder), { recursive: true, force: true });
}
for (const [folder, pattern] of Object.entries(FILES)) {
  const source = join(root, "node_modules", folder);
  for (const file of globSync(pattern, { cwd: source })) {
    const target = join(root, "proto", file);
    mkdirSync(dirname(target), { recursive: true });
    copyFileSync(join(source, file), target);
  }
}
