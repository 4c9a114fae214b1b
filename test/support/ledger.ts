import { isDeepStrictEqual } from "node:util";
import { type Json, paths, type RestClient } from "./rest.ts";

/** The oracle of the durability tests: what a service must hold, by what it has acknowledged. */

export interface Fields {
  readonly name: string;
  readonly scopes: readonly string[];
  readonly metadata: Readonly<Record<string, string>>;
}

/** A condition that a key may be in. */
export interface Condition {
  /** Null: there is no record. */
  readonly fields: Fields | null;
  readonly revoked: boolean;
  /** Credentials that work, and such that do not. */
  readonly good: readonly string[];
  readonly bad: readonly string[];
}

/** A key that was acknowledged. After an attempt without an answer it may be in either of two conditions. */
export interface Entry {
  readonly kind: "issued" | "imported";
  readonly keyId: string;
  possible: readonly Condition[];
}

export interface Ledger {
  readonly entries: Entry[];
  /** Creations without an answer: the key may be there or not, but whole. `rawKey` null for an issued one. */
  readonly unanswered: { readonly fields: Fields; readonly rawKey: string | null }[];
  /** Compares the service with the ledger; answers what does not agree. */
  disagreements(rest: RestClient): Promise<string[]>;
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
    disagreements: async (rest) => {
      const credentials = [
        ...entries.flatMap(({ possible }) => possible.flatMap(({ good, bad }) => [...good, ...bad])),
        ...unanswered.flatMap(({ rawKey }) => rawKey ?? []),
      ];
      const observed = { records: await listAll(rest), verdicts: await verifyAll(rest, [...new Set(credentials)]) };
      const known = new Set(entries.map(({ keyId }) => keyId));
      const strangers = [...observed.records.values()].filter(({ key_id }) => !known.has(key_id));
      return [
        ...entries.flatMap((entry) => judgeEntry(entry, observed)),
        ...strangers.flatMap((record) => judgeStranger(record, unanswered)),
        ...unanswered.flatMap(({ fields, rawKey }) => judgeUnanswered(fields.name, rawKey, strangers, observed)),
      ];
    },
  };
}

function judgeEntry({ kind, keyId, possible }: Entry, { records, verdicts }: Observed): string[] {
  const record = records.get(keyId);
  const holds = ({ fields, revoked, good, bad }: Condition) =>
    (fields === null ? record === undefined : isRecord(record, fields, revoked)) &&
    good.every((credential) => verdicts.get(credential)?.key_id === keyId) &&
    bad.every((credential) => verdicts.get(credential)?.is_valid === false);
  if (possible.some(holds)) return [];
  const found = [...new Set(possible.flatMap(({ good, bad }) => [...good, ...bad]))].map((one) => verdicts.get(one));
  return [`${kind} key ${keyId} ${JSON.stringify({ possible, record, found })}`];
}

/** A record without a received response must equal a requested one. */
function judgeStranger(record: Json, unanswered: Ledger["unanswered"]): string[] {
  const asked = unanswered.find(({ fields }) => fields.name === record.name);
  if (asked !== undefined && isRecord(record, asked.fields, false)) return [];
  return [`a key that nobody asked for: ${JSON.stringify(record)}`];
}

/** An import without an answer is there with its record or not at all. */
function judgeUnanswered(
  name: string,
  rawKey: string | null,
  strangers: readonly Json[],
  { verdicts }: Observed,
): string[] {
  const found = strangers.filter((record) => record.name === name);
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
