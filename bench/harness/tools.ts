import { execFileSync } from "node:child_process";

/** Debian packages of external programs. */
const PACKAGES: Readonly<Record<string, string>> = {
  wrk: "wrk",
  h2load: "nghttp2-client",
  go: "golang-go",
  chromium: "chromium",
};

/** Returns the packages of the programs that are not installed. */
export function missing(programs: readonly string[]): string[] {
  return programs.filter((program) => !isInstalled(program)).map((program) => PACKAGES[program] ?? program);
}

export function isInstalled(program: string): boolean {
  try {
    execFileSync("which", [program], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Returns the first line that a program prints for this argument; undefined if it is not installed. */
export function versionOf(program: string, argument: string): string | undefined {
  try {
    return execFileSync(program, [argument], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).split("\n")[0];
  } catch (error) {
    // `wrk --version` exits with status 1.
    const text = error instanceof Error && "stdout" in error ? String(error.stdout).split("\n")[0] : undefined;
    return text === "" ? undefined : text;
  }
}
