import { KNOWN_FAILURES } from "./known-failures.ts";
import { type H2specServer, startServers } from "./servers.ts";
import { buildH2spec, runAgain, runAll } from "./suite.ts";

export interface H2specReport {
  /** Number of cases that ran against Keyhold's transport. */
  readonly cases: number;
  /** Descriptions of the failures; empty if there are none. */
  readonly faults: readonly string[];
}

/** Runs h2spec against Keyhold's transport, which may fail only the cases that plain `node:http2` fails. Needs Go. */
export async function runH2spec(): Promise<H2specReport> {
  const program = await buildH2spec();
  const { ours, references } = await startServers();
  try {
    const [results, known] = await Promise.all([
      Promise.all(ours.map((server) => faultsOf(program, server))),
      Promise.all(references.map((server) => faultsOfList(program, server))),
    ]);
    const cases = results.reduce((sum, result) => sum + result.cases, 0);
    return { cases, faults: [...results.flatMap(({ faults }) => faults), ...known.flat()] };
  } finally {
    await Promise.all([...ours, ...references].map((server) => server.close()));
  }
}

async function faultsOf(program: string, server: H2specServer): Promise<H2specReport> {
  const cases = await runAll(program, server);
  const faults: string[] = [];
  for (const failed of cases.filter(({ id, failure }) => failure !== undefined && !(id in KNOWN_FAILURES))) {
    const { id, title, failure } = await runAgain(program, server, failed);
    if (failure !== undefined)
      faults.push(`${server.name} fails ${id}, "${title}": ${failure.replaceAll("\n", " or ")}`);
  }
  return { cases: cases.length, faults };
}

/** Returns known failures that Node passes. */
async function faultsOfList(program: string, server: H2specServer): Promise<string[]> {
  const cases = await runAll(program, server);
  const failed = new Set(cases.filter(({ failure }) => failure !== undefined).map(({ id }) => id));
  const passed = Object.keys(KNOWN_FAILURES).filter((id) => !failed.has(id));
  return passed.map((id) => `${server.name} passes ${id}: remove it from the known failures`);
}
