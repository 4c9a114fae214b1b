import type { Scenario } from "../harness/scenario.ts";
import { addressScenarios } from "./addresses.ts";
import { againstStockScenarios } from "./against-stock.ts";
import { auditScenarios } from "./audit.ts";
import { batchScenarios } from "./batch.ts";
import { bulkScenarios } from "./bulk.ts";
import { changeScenarios } from "./changes.ts";
import { clusterScenarios } from "./cluster.ts";
import { consoleScenarios } from "./console.ts";
import { controlsScenarios } from "./controls.ts";
import { cpuScenarios } from "./cpu.ts";
import { databaseScenarios } from "./database.ts";
import { gatewayProxyScenarios } from "./gateway-proxies.ts";
import { gatewayScenarios } from "./gateways.ts";
import { goScenarios } from "./go.ts";
import { growthScenarios } from "./growth.ts";
import { guardedScenarios } from "./guarded.ts";
import { hashFloodScenarios } from "./hash-flood.ts";
import { hashImportScenarios } from "./hash-imports.ts";
import { importScenarios } from "./import.ts";
import { limitScenarios } from "./limits.ts";
import { listScenarios } from "./lists.ts";
import { memoryScenarios } from "./memory.ts";
import { missScenarios } from "./miss.ts";
import { mixedScenarios } from "./mixed.ts";
import { overloadScenarios } from "./overload.ts";
import { peerScenarios } from "./peers.ts";
import { processScenarios } from "./process.ts";
import { signatureScenarios } from "./signatures.ts";
import { streamScenarios } from "./streams.ts";
import { tokenScenarios } from "./tokens.ts";
import { verifyScenarios } from "./verify.ts";
import { watcherScenarios } from "./watchers.ts";
import { workingSetScenarios } from "./working-set.ts";

/** All scenarios, in the order of the table. */
export const SCENARIOS: readonly Scenario[] = [
  ...verifyScenarios,
  ...streamScenarios,
  ...workingSetScenarios,
  ...goScenarios,
  ...peerScenarios,
  ...cpuScenarios,
  ...addressScenarios,
  ...tokenScenarios,
  ...controlsScenarios,
  ...limitScenarios,
  ...signatureScenarios,
  ...batchScenarios,
  ...databaseScenarios,
  ...changeScenarios,
  ...importScenarios,
  ...hashImportScenarios,
  ...hashFloodScenarios,
  ...bulkScenarios,
  ...auditScenarios,
  ...watcherScenarios,
  ...growthScenarios,
  ...guardedScenarios,
  ...gatewayScenarios,
  ...gatewayProxyScenarios,
  ...againstStockScenarios,
  ...processScenarios,
  ...clusterScenarios,
  ...memoryScenarios,
  ...mixedScenarios,
  ...overloadScenarios,
  ...listScenarios,
  ...missScenarios,
  ...consoleScenarios,
];
