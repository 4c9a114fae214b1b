import { stat } from "node:fs/promises";
import { deriveKeyRing } from "../../../domain/server-keys.ts";
import { readSigningKeys } from "../../../postgres/signing-key-store.ts";
import { rootSecretFileOf } from "../../../server/root-secrets/file.ts";
import { isNeeded, type RootSecretUse, takeInventory } from "../../secrets/inventory.ts";
import { type Answering, type Check, error, type Finding, ok, warning } from "../finding.ts";

/** That it is there, and random enough, is seen when it is read (`root-secrets.ts`). */
export const checkRootSecretFile: Check = async ({ config, rootSecrets }) => {
  if (rootSecrets === null) return [];
  const file = rootSecretFileOf(config);
  if (file === null) {
    const remedy = "put it into a file that KEYHOLD_ROOT_SECRET_FILE names: an environment is seen by more";
    return [warning("the root secret comes from the environment", remedy)];
  }
  const { mode } = await stat(file);
  if ((mode & 0o007) === 0) return [ok(`the root secret is in ${file}`)];
  return [warning(`others may read ${file}`, `chmod o= ${file}`)];
};

/** Whether the root secrets are those that the database was filled under, and which of them it still needs. */
export const checkRootSecretUse: Check<Answering> = async ({ rootSecrets, database, hasSchema, clock }) => {
  if (rootSecrets === null || !hasSchema) return [];
  const rings = {
    digest: deriveKeyRing(rootSecrets, "secret-digest"),
    signingKeyWrap: deriveKeyRing(rootSecrets, "signing-key-wrap"),
  };
  const signingKeys = (await readSigningKeys(database)).records;
  return (await takeInventory({ database, rings, signingKeys, now: clock.now() })).map(judge);
};

function judge(use: RootSecretUse): Finding {
  const { id, state, issued, imported, inGrace, signingKeys } = use;
  const counts = `${issued} issued and ${imported} imported keys, ${inGrace} secrets in grace, ${signingKeys} signing keys`;
  const message = `root secret ${id} (${state}): ${counts}`;
  if (state === "missing")
    return error(message, "these are refused: give that root secret as a retired one, or restore it from a backup");
  if (isNeeded(use)) return ok(message);
  return warning(message, "nothing stored needs it: drop it when the last macaroon made under it has expired");
}
