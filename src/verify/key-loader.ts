import { KeyholdError } from "../domain/errors.ts";
import { digestName, nameOf, namesOf } from "./cache-keys.ts";
import type { CacheMode, FindKeys, KeyChange, KeyLookup, VerifiableRecord } from "./reader.ts";
import { strictest } from "./strictest.ts";

/** Told of what a read found that is worth keeping: nothing of it changed since the read was sent. */
export type OnFound = (lookup: KeyLookup, found: readonly VerifiableRecord[]) => void;

/** One look-up on its way to the store, and everyone who waits for it. */
interface Read {
  readonly lookup: KeyLookup;
  readonly answer: PromiseWithResolvers<VerifiableRecord | null>;
  /** Someone who waits for it wants the answer kept. */
  isWanted: boolean;
  isSent: boolean;
  /** The answer may be of before a change. Who asked before the change may have it; it is not kept. */
  isStale: boolean;
  /** Keys that changed since it was sent: of a look-up by digest, the answer says whether it is concerned. */
  readonly changed: (readonly string[])[];
}

/** More at once make smaller statements, and cost the database and us more for the same look-ups. */
const MAX_STATEMENTS = 2;
const MAX_LOOKUPS = 1000;

/**
 * Look-ups at the most that wait to be sent: as many as the calls have that may wait (`transport/concurrency-limiter.ts`), and ten statements.
 * A call that is refused because it would have to wait has left its look-up here.
 */
const MAX_QUEUE = 10_000;

/**
 * Reads of keys, gathered: equal look-ups are one, and those of one turn of the event loop, or that came while enough statements
 * were under way, go in one statement. If it fails, it fails for all who wait for it.
 */
export class KeyLoader {
  readonly #findKeys: FindKeys;
  readonly #onFound: OnFound;
  /** The reads that may be joined, by the name of their look-up. */
  readonly #open = new Map<string, Read>();
  readonly #sent = new Set<Read>();
  #queue: Read[] = [];
  #statements = 0;
  #isScheduled = false;

  constructor(findKeys: FindKeys, onFound: OnFound) {
    this.#findKeys = findKeys;
    this.#onFound = onFound;
  }

  /** What the store says, by a read that is sent after this call unless the mode is the default. */
  read(lookup: KeyLookup, mode: CacheMode): Promise<VerifiableRecord | null> {
    const name = nameOf(lookup);
    if (name === undefined) return Promise.resolve(null);
    const open = this.#open.get(name);
    const joined = open !== undefined && (!open.isSent || mode === "default") ? open : null;
    if (joined === null && this.#queue.length >= MAX_QUEUE) return Promise.reject(tooMany());
    const read = joined ?? this.#enqueue(lookup);
    if (mode !== "no-store") this.#keepNewest(name, read);
    else if (open === undefined) this.#open.set(name, read);
    return read.answer.promise;
  }

  /** No read that was sent already may be joined, nor its answer kept, if it may be of what has changed. */
  invalidate({ keyIds, digests }: KeyChange): void {
    if (this.#sent.size === 0) return;
    const names = new Set([...keyIds, ...digests.map(digestName)]);
    for (const read of this.#sent) {
      if (namesOf(read.lookup).some((name) => names.has(name))) this.#spoil(read);
      else if (read.lookup.keyId === null && keyIds.length > 0) {
        read.changed.push(keyIds);
        this.#unlist(read);
      }
    }
  }

  invalidateAll(): void {
    for (const read of this.#sent) this.#spoil(read);
  }

  #enqueue(lookup: KeyLookup): Read {
    const answer = Promise.withResolvers<VerifiableRecord | null>();
    const read: Read = { lookup, answer, isWanted: false, isSent: false, isStale: false, changed: [] };
    this.#queue.push(read);
    this.#schedule();
    return read;
  }

  /** An older read that answers later must not undo what a fresh one has found. */
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
    read.answer.resolve(strictest(found));
  }

  #fail(read: Read, error: unknown): void {
    this.#close(read);
    read.answer.reject(error);
  }

  #spoil(read: Read): void {
    read.isStale = true;
    this.#unlist(read);
  }

  #close(read: Read): void {
    this.#sent.delete(read);
    this.#unlist(read);
  }

  #unlist(read: Read): void {
    const name = nameOf(read.lookup);
    if (name !== undefined && this.#open.get(name) === read) this.#open.delete(name);
  }
}

function tooMany(): KeyholdError {
  return new KeyholdError("OVERLOADED", "too many keys wait to be read");
}

function isOutdated({ isStale, changed }: Read, found: readonly VerifiableRecord[]): boolean {
  return isStale || found.some(({ key }) => changed.some((keyIds) => keyIds.includes(key.keyId)));
}
