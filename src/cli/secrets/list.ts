import { isNeeded, type RootSecretUse, takeInventory } from "../../server/root-secrets/inventory.ts";
import { withResources } from "../command.ts";
import { type OutputOptions, tableText, write, writeJson } from "../output.ts";

const HEADER = ["ID", "STATE", "ISSUED", "IMPORTED", "IN GRACE", "SIGNING KEYS", "VERDICT"];

/** Lists the root secrets and what still depends on each. */
export function listSecrets({ json = false }: OutputOptions): Promise<void> {
  return withResources(async ({ lists, rings, signing }) => {
    const signingKeys = await signing.store.list();
    const uses = await takeInventory({ database: lists, rings, signingKeys, now: signing.clock.now() });
    if (json) return writeJson(uses.map(toJson));
    await write(tableText([HEADER, ...uses.map(columnsOf)]));
    if (uses.some(({ state }) => state === "retired")) console.error(MACAROONS);
  });
}

/** Macaroons are not stored, so they cannot be counted. */
const MACAROONS =
  "Macaroons and page tokens are not counted: drop a retired root secret only after the longest-lived macaroon has expired.";

function columnsOf(use: RootSecretUse): string[] {
  const { id, state, issued, imported, inGrace, signingKeys } = use;
  return [id, state, ...[issued, imported, inGrace, signingKeys].map(String), verdict(use)];
}

function toJson(use: RootSecretUse) {
  const { id, state, issued, imported, inGrace, signingKeys } = use;
  return { id, state, issued, imported, in_grace: inGrace, signing_keys: signingKeys, needed: isNeeded(use) };
}

function verdict(use: RootSecretUse): string {
  if (use.state === "current") return "in use";
  if (use.state === "staged") return "keep: not used yet; `keyhold secrets promote` makes it the current one";
  if (use.state === "missing") return "missing: these keys are rejected until it is configured as a retired one";
  return isNeeded(use) ? "keep: the counted items depend on it" : "can be dropped";
}
