import { type Browser, chromium } from "playwright-core";
import { findProgram } from "./find.ts";

/** Starts the installed Chromium without a window. */
export async function startChromium(): Promise<Browser> {
  // Its sandbox does not work for root.
  const executablePath = findProgram("chromium");
  if (executablePath === undefined) throw new Error("chromium is not installed");
  return chromium.launch({ executablePath, chromiumSandbox: process.getuid?.() !== 0 });
}
