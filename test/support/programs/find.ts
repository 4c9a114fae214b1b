import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** Returns the path of a program of PATH, or of one more of these folders, if it is installed. */
export function findProgram(name: string, more: readonly string[] = []): string | undefined {
  const folders = [...(process.env.PATH ?? "").split(delimiter), ...more];
  return folders.map((folder) => join(folder, name)).find((path) => isFile(path, constants.X_OK));
}

export function isFile(path: string, mode = constants.R_OK): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}
