import type { FastifyBaseLogger } from "fastify";
import { systemMonotonic } from "../lib/clock.ts";
import { Leadership } from "../postgres/leadership.ts";
import type { Signing } from "../signing/signing.ts";
import type { LastUsed } from "../verify/last-used.ts";
import { Jobs } from "./jobs.ts";
import type { Resources } from "./resources.ts";

/** Milliseconds. */
const LAST_USED_INTERVAL = 5_000;
const SIGNING_KEYS_INTERVAL = 30_000;

/** Starts the background jobs of a server. */
export function startJobs(
  { coherence, keys: { clock }, listenUrl }: Resources,
  signing: Signing,
  lastUsed: LastUsed,
  log: Pick<FastifyBaseLogger, "warn">,
): Jobs {
  const jobs = new Jobs({ leadership: new Leadership(listenUrl), clock, monotonic: systemMonotonic, log });
  const reloadSigningKeys = jobs.start({
    name: "signing_keys",
    interval: SIGNING_KEYS_INTERVAL,
    failureMessage: "signing keys could not be read again",
    run: signing.reload,
  });
  // Notifications come at once; the interval is for changes whose notification was missed.
  coherence.onSigningKeys(reloadSigningKeys);
  jobs.start({
    name: "last_used",
    interval: LAST_USED_INTERVAL,
    failureMessage: "last used times could not be written",
    runsAtStop: true,
    run: lastUsed.flush,
  });
  return jobs;
}
