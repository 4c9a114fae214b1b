import { type Browser, chromium, type LaunchOptions } from "playwright-core";
import { findProgram } from "./find.ts";

/** Starts the installed Chromium without a window. `options`: beside the usual ones. */
export async function startChromium(options: LaunchOptions = {}): Promise<Browser> {
  // Its sandbox does not work for root.
  const executablePath = findProgram("chromium");
  if (executablePath === undefined) throw new Error("chromium is not installed");
  return chromium.launch({ ...options, executablePath, chromiumSandbox: process.getuid?.() !== 0 });
}
