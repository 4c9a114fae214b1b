import type { Sql } from "postgres";
import { issue, paths, type RestClient } from "../support/rest.ts";
import { contentOfKey } from "../support/stored-keys.ts";
import type { CallTarget } from "./calls.ts";

/** Prefix of texts that only incomplete requests write, as long as `DONE`, so that a cut falls on the same place in both. */
const UNFINISHED = "unfinished";
const DONE = "completed-";

/** Keys that incomplete requests act on, and a check whether one of those was executed. */
export interface ExecutionMonitor {
  /** The keys for incomplete requests. */
  readonly unfinished: () => CallTarget;
  /** The keys for complete requests. */
  readonly completed: () => CallTarget;
  /** Returns what incomplete requests have changed since the previous call. */
  changes(): Promise<string[]>;
}

/** Creates the keys through the API. `sql` is connected to the server's database. */
export async function createExecutionMonitor(sql: Sql, rest: RestClient): Promise<ExecutionMonitor> {
  let count = 0;
  const suffix = () => String(++count).padStart(9, "0");
  const [victim, other] = [await makeKeys(rest, "victim", suffix()), await makeKeys(rest, "victim", suffix())];
  const victims = [victim.issuedKeyId, victim.importedKeyId, victim.credentialKeyId];
  const rows = () =>
    sql`SELECT key_id, md5(${contentOfKey(sql)}) AS hash FROM api_keys AS k WHERE key_id IN ${sql(victims)} ORDER BY key_id`;
  let before = await rows();
  const known = new Set<string>();
  return {
    unfinished: () => ({ ...victim, mark: UNFINISHED, suffix: suffix() }),
    completed: () => ({ ...other, mark: DONE, suffix: suffix() }),
    async changes() {
      const written = await sql`
        SELECT key_id, name, revocation_description FROM api_keys
        WHERE starts_with(name, ${UNFINISHED}) OR starts_with(revocation_description, ${UNFINISHED})`;
      const fresh = written.filter(({ key_id: id }) => !known.has(id));
      for (const { key_id: id } of fresh) known.add(id);
      const after = await rows();
      const hashes = new Map(after.map(({ key_id: id, hash }) => [id, hash]));
      const changed = before.filter(({ key_id: id, hash }) => hashes.get(id) !== hash);
      before = after;
      return [
        ...fresh.map((row) => `an unfinished request wrote ${JSON.stringify(row)}`),
        ...changed.map(({ key_id: id }) => `an unfinished request changed or deleted the key ${id}`),
      ];
    },
  };
}

async function makeKeys(rest: RestClient, name: string, suffix: string) {
  const [one, two] = [await issue(rest, { name }), await issue(rest, { name })];
  const body = { raw_key: `raw-key-${suffix}-imported`, name, actor_id: "actor" };
  const imported = await rest("POST", paths.imported, body);
  if (imported.status !== 200) throw new Error(`importing answered ${imported.status}: ${imported.text}`);
  return {
    issuedKeyId: one.keyId,
    importedKeyId: imported.body.key_id as string,
    credential: two.secret,
    credentialKeyId: two.keyId,
  };
}
