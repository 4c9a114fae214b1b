import { isDeepStrictEqual } from "node:util";
import { type Json, paths, type RestClient } from "./rest.ts";

/** The oracle of the durability tests: the expected state of the service, from acknowledged changes. */

export interface Fields {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
}

/** A possible state of a key. */
export interface State {
  /** Null: the record does not exist. */
  readonly fields: Fields | null;
  readonly revoked: boolean;
  /** Valid and invalid credentials. */
  readonly good: readonly string[];
  readonly bad: readonly string[];
}

/** An acknowledged key. After a change without a response it may be in either of two states. */
export interface Entry {
  readonly kind: "issued" | "imported";
  readonly keyId: string;
  possible: readonly State[];
}

export interface Ledger {
  readonly entries: Entry[];
  /** Creations without a response: the key exists completely or not at all. `rawKey` is null for an issued key. */
  readonly unanswered: { readonly fields: Fields; readonly rawKey: string | null }[];
  /** Compares the service with the ledger and returns the differences. */
  differences(rest: RestClient): Promise<string[]>;
}

interface Observed {
  /** By key_id. */
  readonly records: ReadonlyMap<string, Json>;
  /** By credential. */
  readonly verdicts: ReadonlyMap<string, Json>;
}

export function newLedger(): Ledger {
  const entries: Ledger["entries"] = [];
  const unanswered: Ledger["unanswered"] = [];
  return {
    entries,
    unanswered,
    differences: async (rest) => {
      const credentials = [
        ...entries.flatMap(({ possible }) => possible.flatMap(({ good, bad }) => [...good, ...bad])),
        ...unanswered.flatMap(({ rawKey }) => rawKey ?? []),
      ];
      const observed = { records: await listAll(rest), verdicts: await verifyAll(rest, [...new Set(credentials)]) };
      const known = new Set(entries.map(({ keyId }) => keyId));
      const unexpected = [...observed.records.values()].filter(({ key_id }) => !known.has(key_id));
      return [
        ...entries.flatMap((entry) => checkEntry(entry, observed)),
        ...unexpected.flatMap((record) => checkUnexpected(record, unanswered)),
        ...unanswered.flatMap(({ fields, rawKey }) => checkUnanswered(fields.name, rawKey, unexpected, observed)),
      ];
    },
  };
}

function checkEntry({ kind, keyId, possible }: Entry, { records, verdicts }: Observed): string[] {
  const record = records.get(keyId);
  const holds = ({ fields, revoked, good, bad }: State) =>
    (fields === null ? record === undefined : isRecord(record, fields, revoked)) &&
    good.every((credential) => verdicts.get(credential)?.key_id === keyId) &&
    bad.every((credential) => verdicts.get(credential)?.is_valid === false);
  if (possible.some(holds)) return [];
  const found = [...new Set(possible.flatMap(({ good, bad }) => [...good, ...bad]))].map((one) => verdicts.get(one));
  return [`${kind} key ${keyId} ${JSON.stringify({ possible, record, found })}`];
}

/** A record without a received response must equal a requested one. */
function checkUnexpected(record: Json, unanswered: Ledger["unanswered"]): string[] {
  const asked = unanswered.find(({ fields }) => fields.name === record.name);
  if (asked !== undefined && isRecord(record, asked.fields, false)) return [];
  return [`a key without a request: ${JSON.stringify(record)}`];
}

/** An import without a response has created its key or not. */
function checkUnanswered(
  name: string,
  rawKey: string | null,
  unexpected: readonly Json[],
  { verdicts }: Observed,
): string[] {
  const found = unexpected.filter((record) => record.name === name);
  const verdict = rawKey === null ? undefined : verdicts.get(rawKey);
  if (found.length < 2 && (rawKey === null || verdict?.key_id === found[0]?.key_id)) return [];
  return [`unanswered ${name}: ${JSON.stringify({ found, verdict })}`];
}

function isRecord(record: Json, fields: Fields, revoked: boolean): boolean {
  const { name, scopes, metadata, status } = record ?? {};
  const expected = revoked ? "KEY_STATUS_REVOKED" : "KEY_STATUS_ACTIVE";
  return isDeepStrictEqual({ name, scopes, metadata }, fields) && status === expected;
}

async function listAll(rest: RestClient): Promise<Map<string, Json>> {
  const records = new Map<string, Json>();
  for (const path of [paths.issued, paths.imported]) {
    for (let token = "", first = true; first || token !== ""; first = false) {
      const { status, body, text } = await rest(
        "GET",
        `${path}?page_size=1000&page_token=${encodeURIComponent(token)}`,
      );
      if (status !== 200) throw new Error(`listing answered ${status}: ${text}`);
      for (const record of body.issued_api_keys ?? body.imported_api_keys) records.set(record.key_id, record);
      token = body.next_page_token;
    }
  }
  return records;
}

async function verifyAll(rest: RestClient, credentials: readonly string[]): Promise<Map<string, Json>> {
  const verdicts = new Map<string, Json>();
  for (let from = 0; from < credentials.length; from += 1000) {
    const part = credentials.slice(from, from + 1000);
    const requests = part.map((credential) => ({ credential }));
    const { status, body, text } = await rest("POST", `${paths.keys}:batchVerify`, { requests });
    if (status !== 200) throw new Error(`verifying answered ${status}: ${text}`);
    for (const [index, credential] of part.entries()) verdicts.set(credential, body.results[index]);
  }
  return verdicts;
}
