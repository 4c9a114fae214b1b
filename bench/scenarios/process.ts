import { startBaseline } from "../baseline/start.ts";
import { run } from "../harness/program.ts";
import type { Scenario } from "../harness/scenario.ts";
import type { ServerProcess } from "../harness/server.ts";
import { install, programOf, startKeyhold } from "../subject/installation.ts";

const ROUNDS = 5;

export const processScenarios: readonly Scenario[] = [
  {
    name: "start",
    group: "process",
    work: "start to ready on an existing database",
    against: "bare Fastify start; both use both cores, since the database starts too",
    unit: "s",
    judged: "difference",
    rounds: ROUNDS,
    prepare: async (fixture) => {
      const { server, dataDir } = await install(fixture);
      await server.stop();
      return {
        subject: () => timeToReady(() => startKeyhold(fixture, dataDir, {}, "both")),
        baseline: () => timeToReady(() => startBaseline(fixture, "bare", { cores: "both" })),
      };
    },
  },
  {
    name: "help",
    group: "process",
    work: "keyhold --help",
    against: "absolute time",
    unit: "s",
    judged: "value",
    rounds: ROUNDS,
    prepare: async (fixture) => {
      const command = fixture.pinning.on("server", [process.execPath, programOf(fixture), "--help"]);
      return { subject: () => seconds(() => run(command)), baseline: null };
    },
  },
];

/** Seconds. */
async function seconds(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return (performance.now() - start) / 1000;
}

async function timeToReady(start: () => Promise<ServerProcess>): Promise<number> {
  let server: ServerProcess | undefined;
  const time = await seconds(async () => {
    server = await start();
  });
  await server?.stop();
  return time;
}
