import type { RevokedKids, SigningKeyStore } from "../../src/signing/signing.ts";
import type { AlgorithmName } from "../../src/token/jwt/algorithms.ts";
import type { NewSigningKey, SigningKeyRecord } from "../../src/token/signing-key.ts";

type Operation = keyof SigningKeyStore;

/** An in-memory store of signing keys that records its operations, and that a test can delay. */
export class MemoryStore implements SigningKeyStore {
  records: SigningKeyRecord[] = [];
  /** Names of nodes that know EdDSA only. */
  oldNodes: string[] = [];
  /** The operations, oldest first. */
  readonly calls: Operation[] = [];
  readonly #held = new Map<Operation, Promise<void>>();

  /** Makes the next call of this operation execute, but delay its result. */
  hold(operation: Operation): { release(): void; fail(error: Error): void } {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#held.set(operation, promise);
    return { release: resolve, fail: reject };
  }

  count(operation: Operation): number {
    return this.calls.filter((one) => one === operation).length;
  }

  list(): Promise<SigningKeyRecord[]> {
    return this.#run("list", () => this.records);
  }

  addFirst(key: NewSigningKey, now: Date): Promise<void> {
    return this.#run("addFirst", () => {
      if (this.records.every(({ retireTime }) => retireTime !== null)) this.#add(key, now);
    });
  }

  replaceActive(key: NewSigningKey, now: Date): Promise<void> {
    return this.#run("replaceActive", () => {
      this.records = this.records.map((record) => ({ ...record, retireTime: record.retireTime ?? now }));
      this.#add(key, now);
    });
  }

  revoke(kid: string, replacement: NewSigningKey | null, now: Date): Promise<RevokedKids> {
    return this.#run("revoke", () => {
      const record = this.records.find((one) => one.kid === kid);
      const isActive = record?.retireTime === null;
      if (record === undefined || (isActive && replacement === null)) return { kid: null, replacement: null };
      this.records = this.records.filter((one) => one !== record);
      if (!isActive || replacement === null) return { kid, replacement: null };
      this.#add(replacement, now);
      return { kid, replacement: replacement.kid };
    });
  }

  rewrap({ kid, wrapped, wrapKeyId }: NewSigningKey, before: string): Promise<void> {
    return this.#run("rewrap", () => {
      this.records = this.records.map((record) =>
        record.kid === kid && record.wrapKeyId === before ? { ...record, wrapped, wrapKeyId } : record,
      );
    });
  }

  extendTokens(kid: string, until: Date): Promise<void> {
    return this.#run("extendTokens", () => {
      this.records = this.records.map((record) =>
        record.kid === kid && (record.tokensExpireTime ?? 0) < until ? { ...record, tokensExpireTime: until } : record,
      );
    });
  }

  nodesWithout(algorithm: AlgorithmName): Promise<string[]> {
    return this.#run("nodesWithout", () => (algorithm === "EdDSA" ? [] : this.oldNodes));
  }

  #add(key: NewSigningKey, createTime: Date): void {
    this.records = [...this.records, { ...key, createTime, retireTime: null, tokensExpireTime: null }];
  }

  async #run<T>(operation: Operation, work: () => T): Promise<T> {
    this.calls.push(operation);
    const held = this.#held.get(operation);
    this.#held.delete(operation);
    const result = work();
    await held;
    return result;
  }
}
