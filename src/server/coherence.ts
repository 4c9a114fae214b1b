import type { MissedChanges } from "../cluster/change-feed.ts";
import type { ChangeNotification } from "../cluster/cluster-session.ts";
import { Membership, type MembershipOptions } from "../cluster/membership.ts";
import { systemClock, systemMonotonic } from "../lib/clock.ts";
import { nodeName } from "../lib/node-name.ts";
import { createReadMissed } from "../postgres/audit/missed-changes.ts";
import { createOpenFeed } from "../postgres/cluster/change-feed.ts";
import { createRenewLease } from "../postgres/cluster/leases.ts";
import type { VerificationCache } from "../verify/cache/cache.ts";
import type { Config } from "./config/config.ts";
import { readBuild, readVersion } from "./version.ts";

/** The membership of this process in the cluster, and the cache that it invalidates. */
export class Coherence {
  readonly membership: Membership;
  /**
   * Received notifications by kind; `missed` counts keys that changed without a session, `forgotten` how often the whole cache was dropped.
   */
  readonly received: Record<ChangeNotification["type"] | "missed" | "forgotten", number> = {
    key: 0,
    digests: 0,
    actor: 0,
    signing_keys: 0,
    hash_schemes: 0,
    audit_log: 0,
    everything: 0,
    missed: 0,
    forgotten: 0,
  };
  /** Changes whenever the signing keys may have changed. */
  signingKeysVersion = 0;
  /** Changes whenever the lookups of imported hashes may have changed. */
  hashSchemesVersion = 0;
  /** The cache that changes of keys invalidate. */
  cache: Pick<VerificationCache, "invalidate" | "clear"> | undefined;
  onSigningKeys: () => void = () => {};
  /** Called with the size of the audit log when events have been added; null: this node has made a change. */
  onAuditLog: (size: number | null) => void = () => {};

  constructor(config: Config, databaseUrl: string, options: Pick<MembershipOptions, "onDisconnect" | "log">) {
    const { databaseListenUrl, leaseTtl, staleGrace } = config;
    const listenUrl = databaseListenUrl ?? databaseUrl;
    this.membership = new Membership({
      open: createOpenFeed(listenUrl),
      readMissed: createReadMissed(listenUrl),
      staleGrace,
      node: { name: nodeName(), version: `${readVersion()}+${readBuild()}`, ttl: leaseTtl },
      renew: createRenewLease(databaseUrl),
      clock: systemClock,
      monotonic: systemMonotonic,
      onChange: (change) => this.#onChange(change),
      onMissed: (changes) => this.#onMissed(changes),
      onInvalidateAll: () => this.#invalidateAll(),
      ...options,
    });
  }

  /** Returns whether cached keys may be used: this node receives every change, or the change waits for it. */
  readonly isCoherent = (): boolean => this.membership.lease.isFresh;

  #onChange(change: ChangeNotification): void {
    this.received[change.type]++;
    if (change.type === "key") this.cache?.invalidate({ keyIds: [change.keyId], digests: [] });
    else if (change.type === "digests") this.cache?.invalidate({ keyIds: [], digests: change.digests });
    else if (change.type === "actor") this.cache?.invalidate({ keyIds: [], digests: [], actorIds: [change.actorId] });
    else if (change.type === "everything") this.#invalidateAll();
    else if (change.type === "hash_schemes") this.hashSchemesVersion++;
    else if (change.type === "audit_log") this.onAuditLog(change.size);
    else {
      this.signingKeysVersion++;
      this.onSigningKeys();
    }
  }

  /** Signing keys and hash formats are few: they are read again whether they have changed or not. */
  #onMissed(changes: MissedChanges): void {
    this.received.missed += changes.keyIds.length;
    this.signingKeysVersion++;
    this.hashSchemesVersion++;
    this.cache?.invalidate(changes);
  }

  /** Unknown changes may have been missed. */
  #invalidateAll(): void {
    this.received.forgotten++;
    this.signingKeysVersion++;
    this.hashSchemesVersion++;
    this.cache?.clear();
  }
}
