import { KeyholdError } from "../../domain/errors.ts";
import { type KeyLookup, strictest, type VerifiableRecord } from "../../domain/key-lookup.ts";
import type { CacheMode, FindKeys, KeyChange } from "../reader.ts";
import { digestName, namesOf, readNameOf } from "../reader.ts";

/** Called with a result to cache: nothing in it has changed since the read was sent. */
export type OnFound = (lookup: KeyLookup, found: readonly VerifiableRecord[]) => void;

/** One lookup, queued or in flight, and its callers. */
interface Read {
  readonly lookup: KeyLookup;
  readonly answer: PromiseWithResolvers<readonly VerifiableRecord[]>;
  /** Whether a caller wants the result cached. */
  isWanted: boolean;
  isSent: boolean;
  /** The result may predate a change. Callers from before the change may use it; it is not cached. */
  isStale: boolean;
  /** Keys and actors changed since it was sent. Only the result shows the actor, and for a lookup by digest the key. */
  readonly changed: KeyChange[];
}

/** Maximum statements in flight. More would make smaller statements, at a higher cost for the same lookups. */
const MAX_STATEMENTS = 2;
const MAX_LOOKUPS = 1000;

/**
 * Maximum lookups queued: as many as the calls that may wait (`transport/pipeline/concurrency-limiter.ts`), plus ten statements. A call that is rejected
 * because it would have to wait leaves its lookup in the queue.
 */
const MAX_QUEUE = 10_000;

/**
 * Loads keys in batches: equal lookups are coalesced, and lookups of one tick, or queued while enough statements are in flight, share a
 * statement. If it fails, it fails for all its callers.
 */
export class KeyLoader {
  readonly #findKeys: FindKeys;
  readonly #onFound: OnFound;
  /** Reads that can be joined, by lookup name. */
  readonly #open = new Map<string, Read>();
  readonly #sent = new Set<Read>();
  #queue: Read[] = [];
  #statements = 0;
  #isScheduled = false;

  constructor(findKeys: FindKeys, onFound: OnFound) {
    this.#findKeys = findKeys;
    this.#onFound = onFound;
  }

  /** Reads a key. Unless `mode` is the default, the read is sent after this call. */
  async read(lookup: KeyLookup, mode: CacheMode): Promise<VerifiableRecord | null> {
    return strictest(await this.readAll(lookup, mode));
  }

  /** Reads every key that a lookup finds. */
  readAll(lookup: KeyLookup, mode: CacheMode): Promise<readonly VerifiableRecord[]> {
    const name = readNameOf(lookup);
    if (name === undefined) return Promise.resolve([]);
    const open = this.#open.get(name);
    const joined = open !== undefined && (!open.isSent || mode === "default") ? open : null;
    if (joined === null && this.#queue.length >= MAX_QUEUE) return Promise.reject(tooMany());
    const read = joined ?? this.#enqueue(lookup);
    if (mode !== "no-store") this.#keepNewest(name, read);
    else if (open === undefined) this.#open.set(name, read);
    return read.answer.promise;
  }

  /** Keeps reads that may predate the change from being joined or cached. */
  invalidate(change: KeyChange): void {
    const { keyIds, digests, actorIds = [] } = change;
    if (this.#sent.size === 0) return;
    const names = new Set([...keyIds, ...digests.map(digestName)]);
    for (const read of this.#sent) {
      if (namesOf(read.lookup).some((name) => names.has(name))) this.#markStale(read);
      else if (actorIds.length > 0 || (read.lookup.keyId === null && keyIds.length > 0)) {
        read.changed.push(change);
        this.#closeToJoins(read);
      }
    }
  }

  invalidateAll(): void {
    for (const read of this.#sent) this.#markStale(read);
  }

  #enqueue(lookup: KeyLookup): Read {
    const answer = Promise.withResolvers<readonly VerifiableRecord[]>();
    const read: Read = { lookup, answer, isWanted: false, isSent: false, isStale: false, changed: [] };
    this.#queue.push(read);
    this.#schedule();
    return read;
  }

  /** An older read that finishes later must not overwrite the result of a newer one. */
  #keepNewest(name: string, read: Read): void {
    const open = this.#open.get(name);
    if (open !== undefined && open !== read) open.isStale = true;
    this.#open.set(name, read);
    read.isWanted = true;
  }

  #schedule(): void {
    if (this.#isScheduled || this.#queue.length === 0 || this.#statements >= MAX_STATEMENTS) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      void this.#send(this.#queue.splice(0, MAX_LOOKUPS));
      this.#schedule();
    });
  }

  async #send(reads: readonly Read[]): Promise<void> {
    for (const read of reads) {
      read.isSent = true;
      this.#sent.add(read);
    }
    this.#statements++;
    try {
      const found = await this.#findKeys(reads.map(({ lookup }) => lookup));
      for (const [place, read] of reads.entries()) this.#answer(read, found[place] ?? []);
    } catch (error) {
      for (const read of reads) this.#fail(read, error);
    } finally {
      this.#statements--;
      this.#schedule();
    }
  }

  #answer(read: Read, found: readonly VerifiableRecord[]): void {
    this.#close(read);
    if (read.isWanted && !isOutdated(read, found)) this.#onFound(read.lookup, found);
    read.answer.resolve(found);
  }

  #fail(read: Read, error: unknown): void {
    this.#close(read);
    read.answer.reject(error);
  }

  #markStale(read: Read): void {
    read.isStale = true;
    this.#closeToJoins(read);
  }

  #close(read: Read): void {
    this.#sent.delete(read);
    this.#closeToJoins(read);
  }

  #closeToJoins(read: Read): void {
    const name = readNameOf(read.lookup);
    if (name !== undefined && this.#open.get(name) === read) this.#open.delete(name);
  }
}

function tooMany(): KeyholdError {
  return new KeyholdError("OVERLOADED", "too many keys are waiting to be read; retry after 1 s");
}

function isOutdated({ isStale, changed }: Read, found: readonly VerifiableRecord[]): boolean {
  return isStale || found.some(({ key }) => changed.some((change) => concerns(change, key)));
}

function concerns({ keyIds, actorIds = [] }: KeyChange, { keyId, actorId }: VerifiableRecord["key"]): boolean {
  return keyIds.includes(keyId) || actorIds.includes(actorId);
}
