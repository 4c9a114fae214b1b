import { cpSync, globSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";

/** Copies Google's protos into `proto/` (part of `npm run generate`), so that it compiles with no other folder. */

const root = resolve(import.meta.dirname, "../..");
const source = join(root, "node_modules/google-proto-files");

/** The imports of our protos, and the error details in our responses. */
const FILES =
  "google/{api/{annotations,client,field_behavior,http,launch_stage},rpc/{code,error_details,status}}.proto";

rmSync(join(root, "proto/google"), { recursive: true, force: true });
for (const file of globSync(FILES, { cwd: source })) cpSync(join(source, file), join(root, "proto", file));
