import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { run } from "../../support/programs/run.ts";
import { virtualEnvironment } from "../../support/programs/virtual-environment.ts";
import type { ProgramReport } from "../runner.ts";
import type { Target } from "../target.ts";

const here = import.meta.dirname;
const root = resolve(here, "../../..");

/**
 * The checks of each response. Excluded: `positive_data_acceptance` and `negative_data_rejection`, which need knowledge that a schema
 * cannot express, such as the syntax of filters, and expect that a malformed X-Request-Id is rejected, which Keyhold replaces instead.
 */
const CHECKS = [
  "not_a_server_error",
  "status_code_conformance",
  "content_type_conformance",
  "response_headers_conformance",
  "response_schema_conformance",
  "unsupported_method",
  "allow_header_conformance",
];

/** Sends requests generated from the OpenAPI document. Returns the output of schemathesis if it found a problem. Needs Python. */
export async function runSchemathesis(target: Target, seconds: number, seed: number): Promise<ProgramReport> {
  const python = await virtualEnvironment(join(root, "node_modules/.cache/keyhold-schemathesis"), [
    join(here, "requirements.txt"),
  ]);
  const checks = target.token === undefined ? CHECKS : [...CHECKS, "ignored_auth"];
  const dir = await mkdtemp(join(tmpdir(), "keyhold-schemathesis-"));
  try {
    const report = join(dir, "report.json");
    const args = [
      ...["-m", "schemathesis.cli", "--no-color", "--config-file", join(here, "schemathesis.toml")],
      ...["run", join(root, "docs/openapi.json"), "--url", target.url, "--checks", checks.join(",")],
      ...["--max-time", String(Math.ceil(seconds)), "--seed", String(seed), "--request-timeout", "10"],
      ...["--report", "json", "--report-json-path", report],
    ];
    const env = { KEYHOLD_TOKEN: target.token ?? "none" };
    const { status, stdout, stderr } = await run({ program: python, args, cwd: dir, env });
    const { test_cases: cases } = JSON.parse(await readFile(report, "utf8"));
    return { cases: cases.generated, problems: status === 0 ? [] : [`exit status ${status}\n${stdout}${stderr}`] };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
