import type { KeyLookup, VerifiableRecord } from "../../src/domain/key-lookup.ts";
import type { FindKeys } from "../../src/verify/reader.ts";

/** A statement in flight that the test resolves. */
export interface Statement {
  readonly lookups: readonly KeyLookup[];
  /** Resolves with the current content of the store, or with that of the time of the request. */
  release(by?: "now" | "then"): void;
  fail(error: Error): void;
}

/** An in-memory store of keys, whose statements can be delayed and released in any order. */
export class TestStore {
  readonly records = new Map<string, VerifiableRecord>();
  /** The digests of prefixes by which keys with slow hashes are found, by key id. */
  readonly prefixes = new Map<string, readonly Uint8Array[]>();
  /** All statements in order. */
  readonly statements: (readonly KeyLookup[])[] = [];
  readonly held: Statement[] = [];
  isHolding = false;

  readonly findKeys: FindKeys = async (lookups) => {
    this.statements.push(lookups);
    return this.isHolding ? this.#hold(lookups) : this.#find(lookups);
  };

  put(record: VerifiableRecord): void {
    this.records.set(record.key.keyId, record);
  }

  #hold(lookups: readonly KeyLookup[]): Promise<VerifiableRecord[][]> {
    const { promise, resolve, reject } = Promise.withResolvers<VerifiableRecord[][]>();
    const then = this.#find(lookups);
    const end = (settle: () => void) => {
      this.held.splice(this.held.indexOf(statement), 1);
      settle();
    };
    const statement: Statement = {
      lookups,
      release: (by = "now") => end(() => resolve(by === "now" ? this.#find(lookups) : then)),
      fail: (error) => end(() => reject(error)),
    };
    this.held.push(statement);
    return promise;
  }

  #find(lookups: readonly KeyLookup[]): VerifiableRecord[][] {
    return lookups.map(({ keyId, digests, hashes = [] }) => {
      if (keyId === null) return this.#byDigest([...digests, ...hashes]);
      const record = this.records.get(keyId);
      return record === undefined ? [] : [record];
    });
  }

  #byDigest(digests: readonly Uint8Array[]): VerifiableRecord[] {
    return [...this.records.values()].filter(
      ({ key, secrets }) =>
        key.kind === "imported" &&
        [...secrets.map(({ digest }) => digest.digest), ...(this.prefixes.get(key.keyId) ?? [])].some((name) =>
          digests.some((one) => equals(one, name)),
        ),
    );
  }
}

function equals(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}

/** Resolves when the requests of this tick of the event loop have been sent. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}
