import { copyFileSync, globSync, mkdirSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";

/** Writes `proto/google/` (part of `npm run generate`), so that `proto/` compiles with no other folder. */

const root = resolve(import.meta.dirname, "../..");
const [source, target] = [join(root, "node_modules/google-proto-files"), join(root, "proto")];
/** The imports of our protos, and the error details in our responses. */
const FILES =
  "google/{api/{annotations,client,field_behavior,http,launch_stage},rpc/{code,error_details,status}}.proto";

rmSync(join(target, "google"), { recursive: true, force: true });
for (const file of globSync(FILES, { cwd: source })) {
  mkdirSync(dirname(join(target, file)), { recursive: true });
  copyFileSync(join(source, file), join(target, file));
}
