import type { PostgresServer } from "../../support/standby.ts";
import type { History, Mutation, Register } from "../history.ts";
import { NO_KEY } from "../register.ts";

/**
 * The committed changes of a server, recorded by triggers that insert a row for each change of a key. A standby has the rows that it has
 * replayed.
 */

/** A row of the journal: columns of the key after the change. */
export interface Entry {
  readonly name: string;
  readonly action: "INSERT" | "UPDATE" | "DELETE";
  readonly scopes: string;
  readonly is_revoked: boolean;
  readonly hint: string;
  /** Whether the change disabled or enabled the key. */
  readonly is_flip: boolean;
}

const SCHEMA = `
  CREATE SCHEMA journal;
  CREATE TABLE journal.entries (
    name text, action text, scopes text, is_revoked boolean, hint text, is_flip boolean
  );
  CREATE FUNCTION journal.note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
  DECLARE
    key api_keys := CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
  BEGIN
    INSERT INTO journal.entries VALUES (key.name, TG_OP, array_to_string(key.scopes, ' '), key.revoke_time IS NOT NULL, key.hint,
      TG_OP = 'UPDATE' AND (OLD.disable_time IS NULL) <> (NEW.disable_time IS NULL));
    RETURN NULL;
  END $$;
  CREATE TRIGGER journal_all AFTER INSERT OR DELETE ON api_keys FOR EACH ROW EXECUTE FUNCTION journal.note();
  CREATE TRIGGER journal_updates AFTER UPDATE ON api_keys FOR EACH ROW
    WHEN ((OLD.scopes, OLD.revoke_time, OLD.disable_time, OLD.secret_version)
      IS DISTINCT FROM (NEW.scopes, NEW.revoke_time, NEW.disable_time, NEW.secret_version))
    EXECUTE FUNCTION journal.note()`;

export async function keepJournal(primary: PostgresServer): Promise<void> {
  await primary.admin.unsafe(SCHEMA);
}

/** Returns the acknowledged changes that are missing in the journal of this server. */
export async function lostChanges(server: PostgresServer, { registers }: History): Promise<Mutation[]> {
  const entries = await server.admin<Entry[]>`SELECT * FROM journal.entries`;
  const byName = Map.groupBy(entries, ({ name }) => name);
  return registers.flatMap((register) => missing(byName.get(register.name) ?? [], register));
}

/** Returns the acknowledged changes of a key without an entry. */
export function missing(entries: readonly Entry[], register: Register): Mutation[] {
  return register.mutations.filter((one) => one.acknowledged !== null && !isIn(entries, one, register));
}

function isIn(entries: readonly Entry[], mutation: Mutation, { mutations }: Register): boolean {
  const { kind, hint, effect } = mutation;
  const scopes = effect(NO_KEY).scopes.join(" ");
  switch (kind) {
    case "revoke":
    case "self-revoke":
      return entries.some((entry) => entry.is_revoked);
    case "delete": {
      const deletions = mutations.filter((one) => one.kind === "delete" && one.acknowledged !== null);
      return entries.filter(({ action }) => action === "DELETE").length > deletions.indexOf(mutation);
    }
    case "rotate":
    case "rotate with grace":
      return entries.some((entry) => entry.hint === hint);
    case "disable":
    case "enable":
      return entries.filter((entry) => entry.is_flip).length >= flipsUntil(mutation, mutations);
    default:
      return entries.some((entry) => entry.scopes === scopes);
  }
}

/** Returns how many acknowledged changes have disabled or enabled the key up to this one, which itself may have changed nothing. */
function flipsUntil(last: Mutation, mutations: readonly Mutation[]): number {
  let [state, flips] = [NO_KEY, 0];
  for (const { kind, acknowledged, effect } of mutations.slice(0, mutations.indexOf(last) + 1)) {
    if (acknowledged === null) continue;
    const after = effect(state);
    if ((kind === "disable" || kind === "enable") && after.disabled !== state.disabled) flips++;
    state = after;
  }
  return flips;
}
