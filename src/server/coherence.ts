import { hostname } from "node:os";
import type { ChangeNotification } from "../cluster/cluster-session.ts";
import { Membership, type MembershipOptions } from "../cluster/membership.ts";
import { systemClock, systemMonotonic } from "../lib/clock.ts";
import { createOpenFeed } from "../postgres/change-feed.ts";
import { createRenewLease } from "../postgres/leases.ts";
import type { KeyChange } from "../verify/reader.ts";
import type { Config } from "./config/config.ts";
import { readVersion } from "./version.ts";

/** What this process remembers, and how it stays in step with what all others change. */
export interface Coherence {
  readonly membership: Membership;
  /** Whether what is remembered may be used: every change is heard of, or waits for us. */
  readonly isCoherent: () => boolean;
  /** Whether what is remembered may be used nevertheless, as stale (`KEYHOLD_STALE_GRACE`). */
  readonly isInStaleGrace: () => boolean;
  /** Resolves when `isCoherent` holds by a renewal that was sent after this call. @throws `DATABASE_UNAVAILABLE` */
  readonly renewed: () => Promise<void>;
  /** Why the database is unreachable; null: it is reachable. */
  readonly unavailableReason: () => Error | null;
  /** Who is told of keys that changed. */
  addCache(memory: InvalidatedCache): void;
  /** Another number whenever the signing keys may have changed. */
  readonly signingKeysVersion: number;
  /** Changes that were heard of, by what changed, and how often the connection for them was lost or everything may have changed. */
  readonly received: Readonly<Record<ReceivedChange, number>>;
  /** Calls the listener when the signing keys have changed. */
  onSigningKeys(listener: () => void): void;
}

export type ReceivedChange = ChangeNotification["type"] | "forgotten";

export interface InvalidatedCache {
  invalidate(change: KeyChange): void;
  clear(): void;
}

export interface CoherenceOptions {
  readonly config: Config;
  readonly databaseUrl: string;
  readonly onGiveUp: MembershipOptions["onGiveUp"];
  readonly log: MembershipOptions["log"];
}

export async function createCoherence(options: CoherenceOptions): Promise<Coherence> {
  const news = new ChangeDispatcher();
  const membership = await createMembership(options, news);
  return {
    membership,
    isCoherent: () => membership.lease.isFresh,
    isInStaleGrace: () => membership.lease.isInStaleGrace,
    renewed: () => membership.renewed(),
    unavailableReason: () => membership.unavailableReason,
    addCache: (memory) => news.memories.push(memory),
    get signingKeysVersion() {
      return news.signingKeysVersion;
    },
    received: news.heard,
    onSigningKeys: (listener) => news.listeners.push(listener),
  };
}

async function createMembership({ config, databaseUrl, onGiveUp, log }: CoherenceOptions, news: ChangeDispatcher) {
  const { databaseListenUrl, leaseTtl, staleGrace } = config;
  return new Membership({
    open: createOpenFeed(databaseListenUrl ?? databaseUrl),
    staleGrace,
    node: { name: `${hostname()}:${process.pid}`, version: readVersion(), ttl: leaseTtl },
    renew: createRenewLease(databaseUrl),
    clock: systemClock,
    monotonic: systemMonotonic,
    onChange: news.onChange,
    onForget: news.onForget,
    onGiveUp,
    log,
  });
}

/** Hands on what is heard. */
class ChangeDispatcher {
  readonly memories: InvalidatedCache[] = [];
  readonly listeners: (() => void)[] = [];
  readonly heard: Record<ReceivedChange, number> = { key: 0, digests: 0, signing_keys: 0, everything: 0, forgotten: 0 };
  signingKeysVersion = 0;

  readonly onChange = (change: ChangeNotification): void => {
    this.heard[change.type]++;
    if (change.type === "key") this.#invalidate({ keyIds: [change.keyId], digests: [] });
    else if (change.type === "digests") this.#invalidate({ keyIds: [], digests: change.digests });
    else if (change.type === "signing_keys") this.#signingKeysChanged();
    else this.onForget();
  };

  /** Anything may have changed unheard. */
  readonly onForget = (): void => {
    this.heard.forgotten++;
    this.signingKeysVersion++;
    for (const memory of this.memories) memory.clear();
  };

  #invalidate(change: KeyChange): void {
    for (const memory of this.memories) memory.invalidate(change);
  }

  #signingKeysChanged(): void {
    this.signingKeysVersion++;
    for (const listener of this.listeners) listener();
  }
}
