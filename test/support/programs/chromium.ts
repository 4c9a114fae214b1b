import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium } from "playwright-core";

/** Starts the installed Chromium without a window. */
export async function startChromium(): Promise<Browser> {
  // Its sandbox does not work for root.
  return chromium.launch({ executablePath: pathOf("chromium"), chromiumSandbox: process.getuid?.() !== 0 });
}

/** Returns the path of a program, which Playwright does not look up. Throws `Error` if it is not installed. */
function pathOf(program: string): string {
  const paths = (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, program));
  const found = paths.find(isExecutable);
  if (found === undefined) throw new Error(`${program} is not installed`);
  return found;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
