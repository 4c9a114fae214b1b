import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";

export function readVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  return version;
}

let build: string | undefined;

/** Returns a digest of the files of this program, which differs between two builds of one version. Reads them once, in 20 ms. */
export function readBuild(): string {
  build ??= digestOf(new URL("../", import.meta.url));
  return build;
}

/** Returns a digest of the names and contents of the files of a program. */
export function digestOf(folder: URL): string {
  const digest = createHash("sha256");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) =>
    /\.(?:ts|js|sql)$/.test(file),
  );
  for (const file of files.sort()) digest.update(`${file}\n`).update(readFileSync(new URL(file, folder)));
  return digest.digest("hex").slice(0, 12);
}
