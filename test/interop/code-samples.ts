import { type CodeSample, codeSamples, EXECUTED, withSampleFiles } from "../support/code-samples.ts";
import { run, succeed } from "../support/programs/run.ts";
import { collect, type Ok } from "./browser/checks.ts";
import { printTap } from "./tap.ts";

/**
 * Compiles the code samples of the OpenAPI document in Python, Go and Java, and runs some of them. Reads KEYHOLD_URL, KEYHOLD_TOKEN and
 * PYTHON; prints TAP.
 */

const { KEYHOLD_URL: baseUrl = "", PYTHON: python = "python3" } = process.env;

interface Language {
  readonly lang: string;
  readonly extension: string;
  /** Prints nothing if all files are valid; otherwise it fails or prints their names. */
  readonly check: (files: readonly string[]) => readonly string[];
  readonly run: (file: string) => readonly string[];
}

const LANGUAGES: readonly Language[] = [
  {
    lang: "Python",
    extension: "py",
    check: (files) => [python, "-m", "py_compile", ...files],
    run: (file) => [python, file],
  },
  { lang: "Go", extension: "go", check: (files) => ["gofmt", "-l", ...files], run: (file) => ["go", "run", file] },
  {
    lang: "Java",
    extension: "java",
    check: (files) => ["javac", "-d", "classes", ...files],
    run: (file) => ["java", file],
  },
];

printTap(await collect(...LANGUAGES.map((language) => (ok: Ok) => checkLanguage(language, ok))));

async function checkLanguage({ lang, extension, check, run: runFile }: Language, ok: Ok): Promise<void> {
  // A class of Java has the name of its operation, as all are compiled together.
  const samples = codeSamples
    .filter((sample) => sample.lang === lang)
    .map((sample) => ({ ...sample, source: sample.source.replace("class Sample", `class ${sample.operationId}`) }));
  const fileOf = ({ operationId }: Pick<CodeSample, "operationId">) => `${operationId}.${extension}`;
  const checkAll = async (cwd: string) => {
    const [program = "", ...args] = check(samples.map(fileOf));
    const { status, stdout, stderr } = await run({ program, args, cwd });
    ok(`${lang}: the samples of ${samples.length} operations are valid`, status === 0 && stdout === "", {
      stdout,
      stderr,
    });
    for (const [operationId, expected] of EXECUTED) {
      const [program = "", ...args] = runFile(fileOf({ operationId }));
      const output = await succeed({ program, args, cwd });
      ok(`${lang}: ${operationId} runs`, expected.test(output), output.length);
    }
  };
  await withSampleFiles(samples, fileOf, checkAll, baseUrl);
}
