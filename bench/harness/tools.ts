import { execFileSync } from "node:child_process";

/** Debian packages of the programs that are no part of the project. */
const PACKAGES: Readonly<Record<string, string>> = {
  wrk: "wrk",
  h2load: "nghttp2-client",
  go: "golang-go",
};

/** The packages of those programs that are not here. */
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

/** The first line that a program writes for this argument; undefined without the program. */
export function versionOf(program: string, argument: string): string | undefined {
  try {
    return execFileSync(program, [argument], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).split("\n")[0];
  } catch (error) {
    // wrk ends with status 1 after it has shown its version.
    const text = error instanceof Error && "stdout" in error ? String(error.stdout).split("\n")[0] : undefined;
    return text === "" ? undefined : text;
  }
}
