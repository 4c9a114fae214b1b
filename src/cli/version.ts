import { readVersion } from "../server/version.ts";
import { type OutputOptions, writeJson } from "./output.ts";

export async function printVersion(options: OutputOptions): Promise<void> {
  const version = readVersion();
  if (options.json === true) await writeJson({ version });
  else console.log(version);
}
