import { hostname } from "node:os";
import type { ChangeNotification } from "../cluster/cluster-session.ts";
import { Membership, type MembershipOptions } from "../cluster/membership.ts";
import { systemClock, systemMonotonic } from "../lib/clock.ts";
import { createOpenFeed } from "../postgres/change-feed.ts";
import { createRenewLease } from "../postgres/leases.ts";
import type { KeyChange } from "../verify/reader.ts";
import type { Config } from "./config/config.ts";
import { readVersion } from "./version.ts";

/** The membership of this process in the cluster, and the caches that it invalidates. */
export interface Coherence {
  readonly membership: Membership;
  /** Whether cached keys may be used: this node receives every change, or the change waits for it. */
  readonly isCoherent: () => boolean;
  /** Whether cached keys may be used nevertheless, marked as stale (`KEYHOLD_STALE_GRACE`). */
  readonly isInStaleGrace: () => boolean;
  /** Resolves when `isCoherent` holds by a renewal that was sent after this call. @throws `DATABASE_UNAVAILABLE` */
  readonly renewed: () => Promise<void>;
  /** Why the database is unreachable; null: it is reachable. */
  readonly unavailableReason: () => Error | null;
  /** Adds a cache that is invalidated by changes of keys. */
  addCache(cache: InvalidatedCache): void;
  /** Changes whenever the signing keys may have changed. */
  readonly signingKeysVersion: number;
  /** Received notifications by what changed; `forgotten`: how often everything was dropped. */
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
  const dispatcher = new ChangeDispatcher();
  const membership = await createMembership(options, dispatcher);
  return {
    membership,
    isCoherent: () => membership.lease.isFresh,
    isInStaleGrace: () => membership.lease.isInStaleGrace,
    renewed: () => membership.renewed(),
    unavailableReason: () => membership.unavailableReason,
    addCache: (cache) => dispatcher.caches.push(cache),
    get signingKeysVersion() {
      return dispatcher.signingKeysVersion;
    },
    received: dispatcher.received,
    onSigningKeys: (listener) => dispatcher.listeners.push(listener),
  };
}

async function createMembership(
  { config, databaseUrl, onGiveUp, log }: CoherenceOptions,
  dispatcher: ChangeDispatcher,
) {
  const { databaseListenUrl, leaseTtl, staleGrace } = config;
  return new Membership({
    open: createOpenFeed(databaseListenUrl ?? databaseUrl),
    staleGrace,
    node: { name: `${hostname()}:${process.pid}`, version: readVersion(), ttl: leaseTtl },
    renew: createRenewLease(databaseUrl),
    clock: systemClock,
    monotonic: systemMonotonic,
    onChange: dispatcher.onChange,
    onForget: dispatcher.onForget,
    onGiveUp,
    log,
  });
}

/** Dispatches received changes to the caches and listeners. */
class ChangeDispatcher {
  readonly caches: InvalidatedCache[] = [];
  readonly listeners: (() => void)[] = [];
  readonly received: Record<ReceivedChange, number> = {
    key: 0,
    digests: 0,
    signing_keys: 0,
    everything: 0,
    forgotten: 0,
  };
  signingKeysVersion = 0;

  readonly onChange = (change: ChangeNotification): void => {
    this.received[change.type]++;
    if (change.type === "key") this.#invalidate({ keyIds: [change.keyId], digests: [] });
    else if (change.type === "digests") this.#invalidate({ keyIds: [], digests: change.digests });
    else if (change.type === "signing_keys") this.#signingKeysChanged();
    else this.onForget();
  };

  /** Changes may have been missed. */
  readonly onForget = (): void => {
    this.received.forgotten++;
    this.signingKeysVersion++;
    for (const cache of this.caches) cache.clear();
  };

  #invalidate(change: KeyChange): void {
    for (const cache of this.caches) cache.invalidate(change);
  }

  #signingKeysChanged(): void {
    this.signingKeysVersion++;
    for (const listener of this.listeners) listener();
  }
}
