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
  readonly is_disabled: boolean;
  /** Time of the change by the wall clock, in milliseconds. */
  readonly time: number;
}

const SCHEMA = `
  CREATE SCHEMA journal;
  CREATE TABLE journal.entries (
    name text, action text, scopes text, is_revoked boolean, hint text, is_disabled boolean, time float8
  );
  CREATE FUNCTION journal.note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
  DECLARE
    key api_keys := CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
  BEGIN
    INSERT INTO journal.entries VALUES (key.name, TG_OP, array_to_string(key.scopes, ' '), key.revoke_time IS NOT NULL, key.hint,
      key.disable_time IS NOT NULL, extract(epoch FROM clock_timestamp()) * 1000);
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
      return stateDuring(entries, mutation).includes(kind === "disable");
    default:
      return entries.some((entry) => entry.scopes === scopes);
  }
}

/**
 * Returns whether the key was disabled when the change began, and after each entry until it was acknowledged. A change that repeats the
 * one before it has no entry, and one that was lost may have a successor of its kind after the restoration, so that a number of entries
 * would not identify it.
 */
function stateDuring(entries: readonly Entry[], { wallClock: [began, ended] = [0, 0] }: Mutation): boolean[] {
  const before = entries.filter(({ time }) => time < began).sort((a, b) => a.time - b.time);
  const during = entries.filter(({ time }) => began <= time && time <= ended);
  return [...before.slice(-1), ...during].map((entry) => entry.action !== "DELETE" && entry.is_disabled);
}
