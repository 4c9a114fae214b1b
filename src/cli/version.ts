import { readVersion } from "../version.ts";

export async function printVersion(): Promise<void> {
  console.log(await readVersion());
}
