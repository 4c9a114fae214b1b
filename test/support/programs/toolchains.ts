import { run } from "./run.ts";

interface Toolchain {
  readonly program: string;
  readonly args: readonly string[];
  /** The output of its version, in two groups. */
  readonly version: RegExp;
  readonly least: readonly [major: number, minor: number];
  readonly install: string;
}

/** Toolchains that must be installed by hand. Everything else comes from package registries in pinned versions. */
const TOOLCHAINS: readonly Toolchain[] = [
  {
    program: "go",
    args: ["version"],
    version: /go(\d+)\.(\d+)/,
    least: [1, 26],
    install: "Go 1.26 or later, from https://go.dev/dl",
  },
  {
    program: "python3",
    args: ["-c", "import ensurepip, sys, venv; print('%d.%d' % sys.version_info[:2])"],
    version: /(\d+)\.(\d+)/,
    least: [3, 11],
    install: "Python 3.11 or later with venv and pip (Debian: python3 and python3-venv)",
  },
  {
    program: "chromium",
    args: ["--version"],
    version: /Chromium (\d+)\.(\d+)/,
    // The first with Ed25519 in Web Crypto.
    least: [137, 0],
    install: "Chromium 137 or later (Debian: chromium)",
  },
  { program: "bash", args: ["--version"], version: /(\d+)\.(\d+)/, least: [4, 4], install: "bash 4.4 or later" },
  { program: "curl", args: ["--version"], version: /curl (\d+)\.(\d+)/, least: [7, 76], install: "curl 7.76 or later" },
  {
    // A runtime alone has `java` too.
    program: "javac",
    args: ["--version"],
    version: /(\d+)()/,
    least: [17, 0],
    install: "a JDK, 17 or later (Debian: openjdk-17-jdk-headless)",
  },
  {
    program: "mvn",
    args: ["--version"],
    version: /Maven (\d+)\.(\d+)/,
    least: [3, 8],
    install: "Maven 3.8 or later (Debian: maven)",
  },
  {
    program: "cargo",
    args: ["--version"],
    version: /(\d+)\.(\d+)/,
    least: [1, 88],
    install: "Rust 1.88 or later, from https://rustup.rs",
  },
];

/** Returns what to install for each of these toolchains that is missing or too old. */
export async function missingToolchains(programs: readonly string[]): Promise<readonly string[]> {
  const problems = await Promise.all(TOOLCHAINS.filter(({ program }) => programs.includes(program)).map(problemOf));
  return problems.filter((problem) => problem !== undefined);
}

async function problemOf({ program, args, version, least, install }: Toolchain): Promise<string | undefined> {
  const outcome = await run({ program, args, cwd: import.meta.dirname }).catch(() => undefined);
  if (outcome?.status !== 0) return `  ${program} is missing, or incomplete: install ${install}`;
  const [, major = 0, minor = 0] = version.exec(outcome.stdout)?.map(Number) ?? [];
  if (major > least[0] || (major === least[0] && minor >= least[1])) return undefined;
  return `  ${program} is version ${major}.${minor}: install ${install}`;
}
