import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { run, succeed } from "../../support/programs/run.ts";

export interface H2specCase {
  /** Such as `http2/6.9.1/3`. */
  readonly id: string;
  readonly title: string;
  /** What was expected, and what came; undefined if the case passes. */
  readonly failure: string | undefined;
}

const here = import.meta.dirname;
const cache = resolve(here, "../../../node_modules/.cache/keyhold-h2spec");

/** Builds h2spec in the version of go.mod. Answers the program. */
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

/** Seconds that a case waits for a frame. */
const USUAL_TIMEOUT = 2;
const LONG_TIMEOUT = 10;

/** Plays all cases against a server. */
export function playAll(program: string, target: H2specTarget): Promise<H2specCase[]> {
  return play(program, target, ["--timeout", `${USUAL_TIMEOUT}`]);
}

/** Plays one case again, with more time: the machine may have had much else to do. */
export async function playAgain(program: string, target: H2specTarget, { id }: H2specCase): Promise<H2specCase> {
  const [result] = await play(program, target, ["--timeout", `${LONG_TIMEOUT}`, id]);
  if (result === undefined) throw new Error(`h2spec has no case ${id}`);
  return { ...result, id };
}

async function play(program: string, { port, tls }: H2specTarget, options: readonly string[]): Promise<H2specCase[]> {
  const folder = await mkdtemp(join(tmpdir(), "keyhold-h2spec-"));
  try {
    const report = join(folder, "report.xml");
    const args = ["--port", `${port}`, "--junit-report", report, ...options];
    const { stderr } = await run({ program, args: tls ? [...args, "--tls", "--insecure"] : args, cwd: here });
    const cases = readReport(await readFile(report, "utf8").catch(() => ""));
    if (cases.length === 0) throw new Error(`h2spec has not reported: ${stderr}`);
    return cases;
  } finally {
    await rm(folder, { recursive: true });
  }
}

const SUITE = /<testsuite [^>]*?package="([^"]*)"[^>]*>([\s\S]*?)<\/testsuite>/g;
const CASE = /<testcase [^>]*?classname="([^"]*)"[^>]*?(?:\/>|>([\s\S]*?)<\/testcase>)/g;

/** A report in the form of JUnit. The number of a case is its place, if all cases were played. */
function readReport(xml: string): H2specCase[] {
  return [...xml.matchAll(SUITE)].flatMap(([, name = "", content = ""]) =>
    [...content.matchAll(CASE)].map(([, title = "", outcome = ""], place) => ({
      id: `${name}/${place + 1}`,
      title,
      failure: /<(?:error|failure)[^>]*>([\s\S]*)<\/(?:error|failure)>/.exec(outcome)?.[1],
    })),
  );
}
