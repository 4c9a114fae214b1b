import { stat } from "node:fs/promises";
import { unwrapTreeKey } from "../../../audit/tree/tree-key.ts";
import { unwrapAffixes, unwrapHmacKey } from "../../../hashing/schemes.ts";
import { readHead } from "../../../postgres/audit/tree-store.ts";
import { readHashing } from "../../../postgres/hashes/hash-scheme-store.ts";
import { readSigningKeys } from "../../../postgres/signing/signing-key-store.ts";
import { createEndpointStore } from "../../../postgres/webhooks/endpoint-store.ts";
import type { Config } from "../../../server/config/config.ts";
import { hasEmbeddedFiles } from "../../../server/database-server.ts";
import { readRootSecrets, rootSecretFileOf } from "../../../server/root-secrets/file.ts";
import { isNeeded, type RootSecretUse, takeInventory } from "../../../server/root-secrets/inventory.ts";
import { deriveRings } from "../../../server/root-secrets/rings.ts";
import { isInUse, type SigningKeyRecord, unwrapSigningKey } from "../../../token/signing-key.ts";
import { signingSecrets } from "../../../webhooks/secret.ts";
import { explain } from "../../failure.ts";
import { type Check, type DatabaseContext, error, type Finding, ok, warning } from "../finding.ts";

/** Returns the server keys, or what is wrong with the root secrets; no keys if the first start will create the root secret. */
export async function readRings(config: Config) {
  try {
    return { rings: deriveRings(await readRootSecrets(config)), findings: [] };
  } catch (reason) {
    const file = rootSecretFileOf(config);
    const isDefaultFile = config.rootSecretFile === null && config.databaseUrl === null;
    const isFirstStart = isDefaultFile && !hasEmbeddedFiles(config.dataDir);
    const isAbsent = (reason as NodeJS.ErrnoException).code === "ENOENT";
    const finding =
      isFirstStart && isAbsent
        ? ok(`no root secret yet: the server will create one at first start, in ${file}`)
        : error(explain(reason), `restore ${file} from a backup`);
    return { rings: null, findings: [finding] };
  }
}

/** Checks where the root secret is stored. Reading it has shown that it is long and random enough. */
export const checkRootSecretFile: Check = async ({ config, rings }) => {
  if (rings === null) return [];
  const file = rootSecretFileOf(config);
  if (file === null) {
    const remedy =
      "move the root secret to a file and set KEYHOLD_ROOT_SECRET_FILE: environment variables are visible to more processes";
    return [warning("the root secret comes from the environment", remedy)];
  }
  const { mode } = await stat(file);
  if ((mode & 0o007) === 0) return [ok(`the root secret is in ${file}`)];
  return [warning(`other users can read ${file}`, `chmod o= ${file}`)];
};

/** Checks that the root secrets are those of the database, and which of them it still needs. */
export const checkRootSecretUse: Check<DatabaseContext> = async ({ rings, database, hasSchema, clock }) => {
  if (rings === null || !hasSchema) return [];
  const signingKeys = (await readSigningKeys(database)).records;
  const hashing = (await readHashing(database)).stored;
  const treeKey = (await database.run(readHead)).key;
  const webhooks = await createEndpointStore({ database, lists: database }).secrets();
  const stored = { signingKeys, hashing, treeKey, webhooks };
  return (await takeInventory({ database, rings, ...stored, now: clock.now() })).map(evaluateUse);
};

function evaluateUse(use: RootSecretUse): Finding {
  const { id, state, issued, imported, inGrace, signingKeys, hashSecrets, webhookSecrets } = use;
  const hashes = hashSecrets === 0 ? "" : `, ${hashSecrets} wrapped hash formats and HMAC keys`;
  const wrapped = `${signingKeys} signing keys${hashes}${webhookSecrets === 0 ? "" : `, ${webhookSecrets} webhook secrets`}`;
  const counts = `${issued} issued and ${imported} imported keys, ${inGrace} secrets in their grace period, ${wrapped}`;
  const message = `root secret ${id} (${state}): ${counts}`;
  if (state === "missing")
    return error(
      message,
      "everything that depends on it is rejected: configure this root secret as retired, or restore it from a backup",
    );
  if (isNeeded(use)) return ok(message);
  return warning(message, "no stored data depends on it: remove it after its last macaroon has expired");
}

const DAY = 86_400_000;
const OLD = 365 * DAY;

export const checkSigningKeys: Check<DatabaseContext> = async ({ config, rings, database, hasSchema, clock }) => {
  if (rings === null || !hasSchema) return [];
  const records = (await readSigningKeys(database)).records;
  const inUse = records.filter((record) => isInUse(record, clock.now()));
  if (inUse.every(({ retireTime }) => retireTime !== null))
    return [ok("no signing key yet: the first server will create one")];
  const opens = (record: SigningKeyRecord) => succeeds(() => unwrapSigningKey(record, rings.signingKeyWrap));
  const states = inUse.map((record) => evaluateKey(record, opens(record), clock.now()));
  return [...states, ...inUse.flatMap((record) => compareAlgorithm(record, config))];
};

/** The setting applies to new keys only, so the active one keeps its algorithm until it is rotated. */
function compareAlgorithm(
  { kid, publicJwk, retireTime }: SigningKeyRecord,
  { signingAlgorithm }: Config,
): readonly Finding[] {
  if (retireTime !== null || signingAlgorithm === null || publicJwk.alg === signingAlgorithm) return [];
  const message = `signing key ${kid} uses ${publicJwk.alg}, but KEYHOLD_SIGNING_ALGORITHM is ${signingAlgorithm}`;
  return [warning(message, `rotate it: keyhold signing-keys rotate --algorithm ${signingAlgorithm}`)];
}

function evaluateKey(
  { kid, createTime, retireTime, tokensExpireTime }: SigningKeyRecord,
  opens: boolean,
  now: number,
): Finding {
  const days = Math.floor((now - createTime.getTime()) / DAY);
  if (retireTime !== null) {
    const until = `retired signing key ${kid}, tokens valid until ${tokensExpireTime?.toISOString()}`;
    return opens
      ? ok(until)
      : warning(`${until}, cannot be unwrapped`, "its tokens are rejected: configure its root secret as retired");
  }
  if (!opens)
    return error(
      `signing key ${kid} cannot be unwrapped`,
      "the root secret does not belong to this database: configure the correct root secret. If it is lost, run `keyhold signing-keys rotate --force`: existing tokens are then rejected",
    );
  const message = `signing key ${kid}, ${days} days old`;
  return now - createTime.getTime() < OLD ? ok(message) : warning(message, "rotate it: keyhold signing-keys rotate");
}

function succeeds(unwrap: () => unknown): boolean {
  try {
    unwrap();
    return true;
  } catch {
    return false;
  }
}

/** Checks that the key which signs the checkpoints of the audit log can be decrypted. */
export const checkTreeKey: Check<DatabaseContext> = async ({ rings, database, hasSchema }) => {
  if (rings === null || !hasSchema) return [];
  const { key } = await database.run(readHead);
  if (key === null || succeeds(() => unwrapTreeKey(key, rings.signingKeyWrap))) return [];
  const remedy =
    "configure its root secret as retired. If it is lost, delete the key as the owner of the database (DELETE FROM audit_tree_key): servers create a new one";
  return [error("the key that signs the checkpoints of the audit log cannot be unwrapped", remedy)];
};

/** Checks that the keys of HMACs, and the texts around raw keys, can be decrypted. */
export const checkHashSecrets: Check<DatabaseContext> = async ({ rings, database, hasSchema }) => {
  if (rings === null || !hasSchema) return [];
  const { hmacKeys, schemes } = (await readHashing(database)).stored;
  const ring = rings.hashSchemeWrap;
  const lost = [
    ...hmacKeys
      .filter((key) => !succeeds(() => unwrapHmacKey(key, ring)))
      .map(({ hmacKeyId }) => `HMAC key ${hmacKeyId}`),
    ...schemes
      .filter((scheme) => !succeeds(() => unwrapAffixes(scheme, ring)))
      .map(({ schemeId }) => `hash format ${schemeId}`),
  ];
  const remedy =
    "unadopted keys with these hashes are rejected: configure their root secret as retired, or import the keys again";
  if (lost.length > 0) return lost.map((name) => error(`${name} cannot be unwrapped`, remedy));
  const wrapped = hmacKeys.length + schemes.filter(({ affixes }) => affixes !== null).length;
  return wrapped === 0 ? [] : [ok(`${wrapped} hash formats and HMAC keys can be unwrapped`)];
};

/** Checks that the secrets which sign webhooks can be decrypted. */
export const checkWebhookSecrets: Check<DatabaseContext> = async ({ rings, database, hasSchema }) => {
  if (rings === null || !hasSchema) return [];
  const endpoints = await createEndpointStore({ database, lists: database }).secrets();
  const lost = endpoints.filter((endpoint) => !succeeds(() => signingSecrets(endpoint, rings.webhookSecretWrap)));
  const remedy =
    "nothing can be sent to it: configure its root secret as retired, or run `keyhold webhooks rotate-secret`";
  if (lost.length > 0)
    return lost.map(({ endpointId }) => error(`webhook secret of ${endpointId} cannot be unwrapped`, remedy));
  return endpoints.length === 0 ? [] : [ok(`the secrets of ${endpoints.length} webhook endpoints can be unwrapped`)];
};
