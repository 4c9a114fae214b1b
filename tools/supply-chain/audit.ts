import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** `unanswered`: the registry gave no advisories, so nothing is known. */
export type Audit =
  | { readonly kind: "clean" }
  | { readonly kind: "vulnerable"; readonly findings: readonly string[] }
  | { readonly kind: "unanswered"; readonly why: string };

interface Report {
  readonly vulnerabilities?: Readonly<Record<string, { readonly severity: string; readonly via: readonly Via[] }>>;
  readonly message?: string;
  readonly error?: { readonly summary?: string };
}

/** An advisory, or the name of a dependency that has one. */
type Via = string | { readonly title: string; readonly url: string };

/** Asks the registry for advisories on all locked packages, by `npm audit`. */
export async function audit(root: string, environment: NodeJS.ProcessEnv = process.env): Promise<Audit> {
  const options = { cwd: root, env: environment, maxBuffer: 64 * 1024 * 1024 };
  // npm ends with 1 if there are advisories, and if there is no answer.
  const { stdout } = await promisify(execFile)("npm", ["audit", "--json"], options).catch((error) => error);
  const report = parse(stdout);
  if (report?.vulnerabilities === undefined)
    return { kind: "unanswered", why: report?.message ?? report?.error?.summary ?? "npm audit wrote no report" };
  const findings = Object.entries(report.vulnerabilities).map(
    ([name, { severity, via }]) => `${name}: ${severity}: ${via.map(describe).join("; ")}`,
  );
  return findings.length === 0 ? { kind: "clean" } : { kind: "vulnerable", findings };
}

function describe(via: Via): string {
  return typeof via === "string" ? `by ${via}` : `${via.title} (${via.url})`;
}

function parse(text: unknown): Report | undefined {
  try {
    return JSON.parse(String(text));
  } catch {
    return undefined;
  }
}
