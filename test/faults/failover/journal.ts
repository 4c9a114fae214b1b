import type { PostgresServer } from "../../support/standby.ts";
import type { History, Mutation, Register } from "../history.ts";
import { NO_KEY } from "../register.ts";

/** What a server has committed, by triggers that write a row for each change of a key: a standby has the rows that it replayed. */

/** A row that a change left. `time` is on the wall clock, in milliseconds. */
interface Entry {
  readonly name: string;
  readonly action: "INSERT" | "UPDATE" | "DELETE";
  readonly scopes: string;
  readonly is_revoked: boolean;
  readonly is_rotation: boolean;
  readonly time: number;
}

const SCHEMA = `
  CREATE SCHEMA journal;
  CREATE TABLE journal.entries (
    name text, action text, scopes text, is_revoked boolean, is_rotation boolean, time timestamptz DEFAULT clock_timestamp()
  );
  CREATE FUNCTION journal.note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
  DECLARE
    key api_keys := CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
  BEGIN
    INSERT INTO journal.entries VALUES (key.name, TG_OP, array_to_string(key.scopes, ' '), key.revoke_time IS NOT NULL,
      TG_OP = 'UPDATE' AND OLD.secret_version <> key.secret_version);
    RETURN NULL;
  END $$;
  CREATE TRIGGER journal_all AFTER INSERT OR DELETE ON api_keys FOR EACH ROW EXECUTE FUNCTION journal.note();
  CREATE TRIGGER journal_updates AFTER UPDATE ON api_keys FOR EACH ROW
    WHEN ((OLD.scopes, OLD.revoke_time, OLD.secret_version) IS DISTINCT FROM (NEW.scopes, NEW.revoke_time, NEW.secret_version))
    EXECUTE FUNCTION journal.note()`;

export async function keepJournal(primary: PostgresServer): Promise<void> {
  await primary.admin.unsafe(SCHEMA);
}

/** The acknowledged changes that are not in the journal of this server. */
export async function lostChanges(server: PostgresServer, { registers }: History): Promise<Mutation[]> {
  const rows = await server.admin<(Omit<Entry, "time"> & { time: string })[]>`
    SELECT *, extract(epoch FROM time) * 1000 AS time FROM journal.entries`;
  const entries = rows.map((row): Entry => ({ ...row, time: Number(row.time) }));
  const byName = Map.groupBy(entries, ({ name }) => name);
  return registers.flatMap((register) => {
    const own = byName.get(register.name) ?? [];
    return register.mutations.filter((one) => one.acknowledged !== null && !isIn(own, one, register));
  });
}

/** Milliseconds by which the wall clock may be stepped, or adjusted, while a change is in flight. */
const TOLERANCE = 50;

function isIn(entries: readonly Entry[], mutation: Mutation, { mutations }: Register): boolean {
  const { kind, began, acknowledged, wallClockOffset, effect } = mutation;
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
    case "rotate with grace": {
      const earliest = began + wallClockOffset - TOLERANCE;
      const latest = (acknowledged ?? began) + wallClockOffset + TOLERANCE;
      return entries.some(({ is_rotation, time }) => is_rotation && time > earliest && time < latest);
    }
    default:
      return entries.some((entry) => entry.scopes === scopes);
  }
}
