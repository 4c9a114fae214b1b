import { readFile } from "node:fs/promises";

export async function printVersion(): Promise<void> {
  const { version } = JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8"));
  console.log(version);
}
