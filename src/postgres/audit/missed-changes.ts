import type { Sql } from "postgres";
import type { LogPosition, MissedChanges, ReadMissed } from "../../cluster/change-feed.ts";
import { withPrimary } from "../connection/primary.ts";
import { serverId, type WithServer } from "../connection/server-position.ts";
import { ownSession } from "../connection/session-settings.ts";
import { sequence } from "./audit-store.ts";

/** Events that are read at most, which bounds the time until the node is ready again. */
const MAX_EVENTS = 20_000;

/** Milliseconds. */
const STATEMENT_TIMEOUT = 5_000;

/** Actions after which keys are looked up under other digests. */
const STORED = new Set(["key.imported", "key.adopted"]);

/** What is about no key and changes no entry of the cache. Signing keys, keys of HMACs and root secrets are read again in any case. */
const OF_ACTOR = /^actor\.(created|updated|deleted)$/;

const WITHOUT_EFFECT =
  /^(signing_key|hmac_key|root_secret|accepted_database|audit|audit_tree_key|webhook_endpoint|call|limit)\./;

type MissedEvent = WithServer<{
  readonly salt: string;
  readonly action: string;
  readonly keyId: string | null;
  readonly actorId: string | null;
}>;

/** Returns a function that reads the audit log over a new connection to this URL, so that it delays no statement of the feed. */
export function createReadMissed(url: string): ReadMissed {
  const options = { url, statementTimeout: STATEMENT_TIMEOUT, prepare: false, applicationName: "keyhold audit" };
  return (since, server) =>
    withPrimary(options, async (sql) => {
      await sequenceAll(sql);
      const [last, ...events] = await readFrom(sql, since);
      // A log that was pruned since, or that is another one, lacks the event before the position.
      if (last?.server !== server || last.salt !== since.salt || events.length > MAX_EVENTS) return null;
      return toChanges(sql, events);
    });
}

/** Gives every committed event a place in the log. */
async function sequenceAll(sql: Sql): Promise<void> {
  while ((await sequence(sql)).isFull);
}

/** Returns the last event before the position, and those after it. */
function readFrom(sql: Sql, { size }: LogPosition): PromiseLike<MissedEvent[]> {
  return sql<MissedEvent[]>`
    SELECT ${serverId(sql)} AS server, salt, action, key_id, actor_id FROM audit_events
    WHERE seq >= ${size - 1} ORDER BY seq LIMIT ${MAX_EVENTS + 2}`;
}

async function toChanges(sql: Sql, events: readonly MissedEvent[]): Promise<MissedChanges | null> {
  const ofKeys = events.filter(({ keyId }) => keyId !== null);
  const ofActors = events.filter(({ action }) => OF_ACTOR.test(action));
  const others = events.filter(({ keyId, action }) => keyId === null && !OF_ACTOR.test(action));
  if (others.some(({ action }) => !WITHOUT_EFFECT.test(action))) return null;
  const keyIds = new Set(ofKeys.flatMap(({ keyId }) => keyId ?? []));
  const stored = ofKeys.flatMap(({ keyId, action }) => (STORED.has(action) ? (keyId ?? []) : []));
  const actorIds = new Set(ofActors.flatMap(({ actorId }) => actorId ?? []));
  const digests = stored.length === 0 ? [] : await digestsOf(sql, stored);
  return { keyIds: [...keyIds], digests, actorIds: [...actorIds] };
}

/** Returns the digests by which raw keys are found. They never change, except by an adoption. */
async function digestsOf(sql: Sql, keyIds: readonly string[]): Promise<Uint8Array[]> {
  const rows = await sql<{ readonly digest: Uint8Array }[]>`
    SELECT raw_key_digests_of(digest, other_digests) AS digest FROM api_keys
    WHERE key_id = ANY (${[...keyIds]}::uuid[]) AND ${ownSession(sql)}`;
  return rows.map(({ digest }) => digest);
}
