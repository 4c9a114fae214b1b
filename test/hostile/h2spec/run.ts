import { KNOWN_FAILURES } from "./known-failures.ts";
import { type H2specServer, startServers } from "./servers.ts";
import { buildH2spec, playAgain, playAll } from "./suite.ts";

export interface H2specReport {
  /** Cases played against our servers. */
  readonly cases: number;
  /** What is wrong, in words; empty: nothing. */
  readonly faults: readonly string[];
}

/** Plays h2spec against our transport, which may fail what plain `node:http2` fails, and nothing else. Needs Go. */
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
  const cases = await playAll(program, server);
  const faults: string[] = [];
  for (const suspect of cases.filter(({ id, failure }) => failure !== undefined && !(id in KNOWN_FAILURES))) {
    const { id, title, failure } = await playAgain(program, server, suspect);
    if (failure !== undefined)
      faults.push(`${server.name} fails ${id}, "${title}": ${failure.replaceAll("\n", " or ")}`);
  }
  return { cases: cases.length, faults };
}

/** A case that Node passes is no known failure of its. */
async function faultsOfList(program: string, server: H2specServer): Promise<string[]> {
  const cases = await playAll(program, server);
  const failed = new Set(cases.filter(({ failure }) => failure !== undefined).map(({ id }) => id));
  const passed = Object.keys(KNOWN_FAILURES).filter((id) => !failed.has(id));
  return passed.map((id) => `${server.name} passes ${id}: take it off the list of known failures`);
}
