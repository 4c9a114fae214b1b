import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { type CodeSample, codeSamples, EXECUTED, withSampleFiles } from "../../support/code-samples.ts";
import { table } from "../../support/conformance.ts";
import { useGuardedService } from "../../support/guarded.ts";
import { succeed } from "../../support/programs/run.ts";
import { operations } from "./document.ts";

/** The code samples of the document. `npm run test:interop` runs those in Python, Go and Java. */
const suite = useGuardedService();

const LANGUAGES = ["Shell", "TypeScript", "Python", "Go", "Java"];
const inTypeScript = codeSamples.filter(({ lang }) => lang === "TypeScript");
const fileOf = ({ operationId }: CodeSample) => `${operationId}.ts`;

test("every operation has a sample in each language, which reads the token if it needs one", () => {
  for (const { operation } of operations) {
    const samples = codeSamples.filter(({ operationId }) => operationId === operation.operationId);
    expect(samples.map(({ lang }) => lang)).toEqual(LANGUAGES);
    for (const { lang, source } of samples) {
      const needsToken = operation.security.length > 0;
      expect(source.includes("KEYHOLD_TOKEN"), `${operation.operationId} in ${lang}`).toBe(needsToken);
      // Only a shell substitutes it.
      expect(lang !== "Shell" && source.includes("$KEYHOLD_TOKEN"), operation.operationId).toBe(false);
      expect(source).not.toMatch(/undefined|@@/);
    }
  }
});

test("the samples in TypeScript compile", async () => {
  const config = {
    extends: resolve(import.meta.dirname, "../../../tsconfig.json"),
    compilerOptions: { lib: ["esnext"], moduleDetection: "force", typeRoots: ["node_modules/@types"] },
    include: ["*.ts"],
    exclude: [],
  };
  await withSampleFiles(inTypeScript, fileOf, async (dir) => {
    await writeFile(join(dir, "tsconfig.json"), JSON.stringify(config));
    await succeed({ program: resolve("node_modules/.bin/tsc"), args: ["-p", dir], cwd: dir });
  });
});

test.for(table(EXECUTED))("%s runs with curl and TypeScript", async ([operationId, expected]) => {
  const samples = codeSamples.filter(
    (one) => one.operationId === operationId && ["Shell", "TypeScript"].includes(one.lang),
  );
  const nameOf = ({ lang }: CodeSample) => (lang === "Shell" ? "sample.sh" : "sample.ts");
  const env = { KEYHOLD_TOKEN: suite.token("keyhold:admin") };
  const run = async (cwd: string) => {
    for (const [program, ...args] of COMMANDS) {
      expect(await succeed({ program, args, cwd, env })).toMatch(expected);
    }
  };
  await withSampleFiles(samples, nameOf, run, suite.server.url);
});

const COMMANDS = [
  ["bash", "sample.sh"],
  [process.execPath, "--conditions=keyhold-source", "sample.ts"],
] as const;
