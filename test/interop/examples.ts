import type { Server } from "./servers.ts";
import type { Check } from "./tap.ts";
export async function runExamples(_: readonly Server[]): Promise<readonly Check[]> {
  return [];
}
