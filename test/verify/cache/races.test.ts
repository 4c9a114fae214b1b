import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import type { KeyLookup, VerifiableRecord } from "../../../src/domain/key-lookup.ts";
import type { RateLimit } from "../../../src/domain/rate-limit.ts";
import { VerificationCache } from "../../../src/verify/cache/cache.ts";
import { type Identified, identifiedRawKey, identifiedSecret, withKey } from "../../../src/verify/identified.ts";
import type { CacheMode } from "../../../src/verify/reader.ts";
import { type Seeded, seededBy } from "../../support/seeded.ts";
import { NO_CONTROLS } from "../fixture.ts";
import { nextTurn, TestStore } from "../store.ts";

/*
 * Calls, changes and their notifications, with the store's results delayed and released in any order. The oracle: every key
 * has a history of states. A verdict must reflect a state at or after the last change whose notification arrived before the call
 * began; with no-cache and no-store, at or after the last change of all.
 */

const random = seededBy("CACHE_RACES_SEED");

const SERVER_KEY = "0011223344556677";

/** A state of a key: its version and that of the limits of its actor; null: it does not exist. */
type State = string | null;

/** An actor of several keys, and the version of its limits; it has none in every third one. */
interface Actor {
  readonly actorId: string;
  version: number;
}

function stateOf(stored: VerifiableRecord | null): State {
  if (stored === null) return null;
  const [limit] = stored.actorLimits?.limits ?? [];
  return `${stored.key.metadata.version}/${limit === undefined ? 0 : (limit as RateLimit).quota}`;
}

/** One key that is found by its id, or one raw key, which may be imported again under other ids. */
class Subject {
  readonly digest: Buffer;
  readonly lookup: KeyLookup;
  readonly history: State[] = [null];
  announced = 0;
  keyId: string;
  readonly actor: Actor;
  readonly #number: number;

  constructor(number: number, actor: Actor) {
    this.actor = actor;
    this.#number = number;
    this.digest = createHash("sha256").update(`subject ${number}`).digest();
    this.keyId = this.newKeyId();
    this.lookup = this.isRaw
      ? { keyId: null, digests: [this.digest] }
      : { keyId: this.keyId, digests: [], isParent: true };
  }

  /** The cache key of its credential. */
  get name(): string {
    return this.digest.toString("latin1");
  }

  get identified(): Identified {
    const digests = [{ keyId: SERVER_KEY, digest: this.digest }];
    return this.lookup.keyId === null
      ? identifiedRawKey(digests)
      : { ...identifiedSecret(this.keyId, digests), lookup: this.lookup };
  }

  get isRaw(): boolean {
    return this.#number % 2 === 0;
  }

  get latest(): number {
    return this.history.length - 1;
  }

  newKeyId(): string {
    const version = this.history.length.toString(16).padStart(12, "0");
    return `0198b2a4-7d3e-7c52-a1f0-${this.isRaw ? version : "000000000000"}`.replace(
      "7d3e",
      this.#number.toString(16).padStart(4, "0"),
    );
  }

  record(): VerifiableRecord {
    const key = {
      keyId: this.keyId,
      kind: this.isRaw ? "imported" : "issued",
      actorId: this.actor.actorId,
      metadata: { version: `${this.history.length}` },
    } as const;
    return this.limited({
      key: { ...key, scopes: [], expireTime: null, revokeTime: null, ...NO_CONTROLS },
      secrets: [{ version: 1, digest: { keyId: SERVER_KEY, digest: this.digest }, expireTime: null }],
    });
  }

  /** Returns the record with the limits that the actor has now. */
  limited({ key, secrets }: VerifiableRecord): VerifiableRecord {
    const { actorId, version } = this.actor;
    const limit = { name: "a", quota: version, window: 1_000, burst: version, onDemand: false } as const;
    const limits = [{ ...limit, enforcement: "ENFORCED", onOutage: "DENY" } as const];
    return version % 3 === 0 ? { key, secrets } : { key, secrets, actorLimits: { actorId, limits } };
  }
}

class Race {
  readonly store = new TestStore();
  readonly cache: VerificationCache;
  readonly actors = ["one", "two"].map((actorId): Actor => ({ actorId, version: 0 }));
  readonly subjects = Array.from({ length: 6 }, (_, number) => {
    return new Subject(number, this.actors[number % 3 === 0 ? 0 : 1] ?? expect.unreachable());
  });
  readonly calls: Promise<void>[] = [];
  /** Changes without a notification yet. */
  readonly unannounced: (() => void)[] = [];
  readonly counts = { atOnce: 0, byRead: 0, announced: 0, cleared: 0, failed: 0 };
  readonly #random: Seeded;

  constructor(random: Seeded) {
    this.#random = random;
    this.store.isHolding = true;
    this.cache = new VerificationCache(this.store.findKeys, {
      maxBytes: 2 ** 22,
      maxEntries: 100,
      maxNegatives: 100,
      isCoherent: () => true,
      renewed: async () => undefined,
    });
  }

  async step(): Promise<void> {
    const choice = this.#random.below(100);
    if (choice < 40) this.call(this.#random.pick(this.subjects), this.#mode());
    else if (choice < 50) this.change(this.#random.pick(this.subjects));
    else if (choice < 52) this.changeLimits(this.#random.pick(this.actors));
    else if (choice < 64) this.announce();
    else if (choice < 85) this.answer();
    else if (choice < 87) this.clear();
    else await nextTurn();
  }

  /** Looks a subject up as verification does. */
  call(subject: Subject, mode: CacheMode): void {
    const oldest = mode === "default" ? subject.announced : subject.latest;
    const credentials = this.cache.credentials ?? expect.unreachable();
    const { generation } = credentials;
    const check = (stored: VerifiableRecord | null) => {
      const allowed = subject.history.slice(oldest);
      expect(allowed, `${subject.lookup.keyId ?? "raw key"}, ${mode}`).toContain(stateOf(stored));
    };
    const found = (stored: VerifiableRecord | null) => {
      check(stored);
      if (mode === "no-store") return;
      if (stored === null) credentials.delete(subject.name);
      else credentials.set(subject.name, withKey(subject.identified, stored), generation);
    };
    const cached = mode === "default" ? credentials.find(subject.name) : undefined;
    const answer = cached === undefined ? this.cache.findKey(subject.lookup, mode) : cached.loaded.stored;
    if (!(answer instanceof Promise)) {
      this.counts.atOnce++;
      if (cached === undefined) found(answer);
      else check(answer);
      return;
    }
    const succeed = (stored: VerifiableRecord | null) => {
      this.counts.byRead++;
      found(stored);
    };
    const fail = () => {
      this.counts.failed++;
    };
    this.calls.push(answer.then(succeed, fail));
  }

  /** Creates, changes or deletes a key. A change notifies the id; a creation the id and the digest. */
  change(subject: Subject): void {
    const isThere = this.store.records.has(subject.keyId);
    const before = subject.keyId;
    if (isThere && this.#random.below(3) === 0) {
      this.store.records.delete(subject.keyId);
      subject.history.push(null);
      this.#later(subject, before, []);
      return;
    }
    if (!isThere) subject.keyId = subject.newKeyId();
    const record = subject.record();
    this.store.put(record);
    subject.history.push(stateOf(record));
    this.#later(subject, subject.keyId, isThere ? [] : [subject.digest]);
  }

  /** Changes the limits of an actor, with those of all its keys, which the notification does not name. */
  changeLimits(actor: Actor): void {
    actor.version++;
    const concerned = this.subjects.filter((subject) => subject.actor === actor);
    for (const subject of concerned) {
      const record = this.store.records.get(subject.keyId);
      if (record === undefined) continue;
      this.store.put(subject.limited(record));
      subject.history.push(stateOf(subject.limited(record)));
    }
    const changes = concerned.map((subject) => [subject, subject.latest] as const);
    this.unannounced.push(() => {
      this.cache.invalidate({ keyIds: [], digests: [], actorIds: [actor.actorId] });
      for (const [subject, change] of changes) subject.announced = Math.max(subject.announced, change);
    });
  }

  #later(subject: Subject, keyId: string, digests: Uint8Array[]): void {
    const change = subject.latest;
    this.unannounced.push(() => {
      this.cache.invalidate({ keyIds: [keyId], digests });
      subject.announced = Math.max(subject.announced, change);
    });
  }

  /** In order for each key. */
  announce(): void {
    this.unannounced.shift()?.();
    this.counts.announced++;
  }

  /** Replaces every lost notification before it. */
  clear(): void {
    this.unannounced.length = 0;
    for (const subject of this.subjects) subject.announced = subject.latest;
    this.cache.clear();
    this.counts.cleared++;
  }

  answer(): void {
    if (this.store.held.length === 0) return;
    const statement = this.#random.pick(this.store.held);
    if (this.#random.below(20) === 0) statement.fail(new Error("away"));
    else statement.release(this.#random.pick(["now", "then"]));
  }

  async finish(): Promise<void> {
    while (this.unannounced.length > 0) this.announce();
    this.store.isHolding = false;
    for (const statement of [...this.store.held]) statement.release("then");
    await Promise.all(this.calls);
    for (const subject of this.subjects) this.call(subject, "default");
    await Promise.all(this.calls);
  }

  #mode(): CacheMode {
    return this.#random.below(5) === 0 ? this.#random.pick(["no-cache", "no-store"]) : "default";
  }
}

test("no call that begins after the notification of a change returns an earlier state", async () => {
  const totals = { atOnce: 0, byRead: 0, announced: 0, cleared: 0, failed: 0 };
  for (let run = 0; run < 80; run++) {
    const race = new Race(random.fork());
    for (let step = 0; step < 250; step++) await race.step();
    await race.finish();
    for (const [name, count] of Object.entries(race.counts))
      Object.assign(totals, { [name]: Reflect.get(totals, name) + count });
  }
  console.info(totals);
  expect(Math.min(...Object.values(totals))).toBeGreaterThan(100);
});

function newRace() {
  const race = new Race(random.fork());
  const [raw, issued] = race.subjects;
  if (raw === undefined || issued === undefined) throw new Error("no subjects");
  for (const subject of [raw, issued]) {
    race.change(subject);
    race.announce();
  }
  return { race, raw, issued };
}

test.each([
  ["raw", "change"],
  ["issued", "change"],
  ["raw", "changeLimits"],
  ["issued", "changeLimits"],
] as const)(
  "a call after a change does not coalesce with an earlier in-flight read (%s key, %s)",
  async (name, change) => {
    const { race, ...subjects } = newRace();
    const subject = subjects[name];
    race.call(subject, "default");
    await nextTurn();
    if (change === "change") race.change(subject);
    else race.changeLimits(subject.actor);
    race.announce();
    race.call(subject, "default");
    await nextTurn();
    expect(race.store.statements.length).toBe(2);
    race.store.held[1]?.release("then");
    await nextTurn();
    race.store.held[0]?.release("then");
    await Promise.all(race.calls);
    race.call(subject, "default");
    expect(race.counts.atOnce).toBe(1);
  },
);

test("a change of one key does not discard the read of another raw key", async () => {
  const { race, raw, issued } = newRace();
  race.call(raw, "default");
  await nextTurn();
  race.change(issued);
  race.announce();
  race.store.held[0]?.release("then");
  await Promise.all(race.calls);
  race.call(raw, "default");
  expect(race.counts.atOnce).toBe(1);
});

test.each(["change", "changeLimits"] as const)("a read that another actor's %s overtakes is cached", async (change) => {
  const { race, raw, issued } = newRace();
  race.call(issued, "default");
  await nextTurn();
  if (change === "change") race.change(raw);
  else race.changeLimits(raw.actor);
  race.announce();
  race.store.held[0]?.release("then");
  await Promise.all(race.calls);
  race.call(issued, "default");
  expect(race.counts.atOnce).toBe(1);
});

test("an unknown raw key is found once it is imported, for a notification under any server key", async () => {
  const race = new Race(random.fork());
  const [raw] = race.subjects;
  if (raw === undefined) throw new Error("no subject");
  const retired = Buffer.alloc(32, 7);
  const lookup = { keyId: null, digests: [Buffer.alloc(32, 8), retired, raw.digest] };
  race.store.isHolding = false;
  expect(await race.cache.findKey(lookup, "default")).toBeNull();
  expect(race.cache.findKey(lookup, "default")).toBeNull();
  race.store.put(raw.record());
  race.cache.invalidate({ keyIds: [], digests: [retired] });
  expect(await race.cache.findKey(lookup, "default")).toMatchObject({ key: { keyId: raw.keyId } });
  expect(race.cache.stats().negatives).toBe(0);
});
