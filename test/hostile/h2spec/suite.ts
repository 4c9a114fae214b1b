import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { run, succeed } from "../../support/programs/run.ts";

export interface H2specCase {
  /** Such as `http2/6.9.1/3`. */
  readonly id: string;
  readonly title: string;
  /** The expected and the actual frames; undefined if the case passed. */
  readonly failure: string | undefined;
}

const here = import.meta.dirname;
const cache = resolve(here, "../../../node_modules/.cache/keyhold-h2spec");

/** Builds h2spec in the version of go.mod. Returns the path of the program. */
export async function buildH2spec(): Promise<string> {
  const program = join(cache, "h2spec");
  const args = ["build", "-o", program, "github.com/summerwind/h2spec/cmd/h2spec"];
  await succeed({ program: "go", args, cwd: here });
  return program;
}

export interface H2specTarget {
  readonly port: number;
  readonly tls: boolean;
}

/** Path of the requests. */
export const H2SPEC_PATH = "/h2spec";

/** Seconds that a case waits for a frame. */
const USUAL_TIMEOUT = 2;
const LONG_TIMEOUT = 10;

/** Runs all cases against a server. */
export function runAll(program: string, target: H2specTarget): Promise<H2specCase[]> {
  return runSuite(program, target, ["--timeout", `${USUAL_TIMEOUT}`]);
}

/** Runs one case again with a longer timeout, since the machine may have been busy. */
export async function runAgain(program: string, target: H2specTarget, { id }: H2specCase): Promise<H2specCase> {
  const [result] = await runSuite(program, target, ["--timeout", `${LONG_TIMEOUT}`, id]);
  if (result === undefined) throw new Error(`h2spec has no case ${id}`);
  return { ...result, id };
}

async function runSuite(
  program: string,
  { port, tls }: H2specTarget,
  options: readonly string[],
): Promise<H2specCase[]> {
  const folder = await mkdtemp(join(tmpdir(), "keyhold-h2spec-"));
  try {
    const report = join(folder, "report.xml");
    const args = ["--port", `${port}`, "--path", H2SPEC_PATH, "--junit-report", report, ...options];
    const { stderr } = await run({ program, args: tls ? [...args, "--tls", "--insecure"] : args, cwd: here });
    const cases = readReport(await readFile(report, "utf8").catch(() => ""));
    if (cases.length === 0) throw new Error(`h2spec wrote no report: ${stderr}`);
    return cases;
  } finally {
    await rm(folder, { recursive: true });
  }
}

const SUITE = /<testsuite [^>]*?package="([^"]*)"[^>]*>([\s\S]*?)<\/testsuite>/g;
const CASE = /<testcase [^>]*?classname="([^"]*)"[^>]*?(?:\/>|>([\s\S]*?)<\/testcase>)/g;

/** Parses a JUnit report. If all cases ran, the number of a case is its position. */
function readReport(xml: string): H2specCase[] {
  return [...xml.matchAll(SUITE)].flatMap(([, name = "", content = ""]) =>
    [...content.matchAll(CASE)].map(([, title = "", outcome = ""], place) => ({
      id: `${name}/${place + 1}`,
      title,
      failure: /<(?:error|failure)[^>]*>([\s\S]*)<\/(?:error|failure)>/.exec(outcome)?.[1],
    })),
  );
}
