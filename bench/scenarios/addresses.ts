import { join } from "node:path";
import { run } from "../harness/program.ts";
import type { Scenario } from "../harness/scenario.ts";

export const addressScenarios: readonly Scenario[] = [
  {
    name: "judge-address",
    group: "addresses",
    work: "judge an IPv6 address against 64 blocks of a key: parse it, and find it in none",
    against: "absolute time",
    unit: "µs",
    judged: "value",
    prepare: async ({ checkout, pinning }) => {
      const script = join(checkout, "bench/in-process/addresses.ts");
      const command = pinning.on("server", [process.execPath, script]);
      return { subject: async () => Number(await run(command)), baseline: null };
    },
  },
];
