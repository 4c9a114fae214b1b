import { setTimeout as sleep } from "node:timers/promises";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { KeyStatus } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import type { IssuedApiKey } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { parseDuration } from "../../domain/duration.ts";
import { invalidArgument } from "../../domain/errors.ts";
import { systemClock } from "../../lib/clock.ts";
import { formatRfc3339 } from "../../token/macaroon/rfc3339.ts";
import { EXIT_STATUS } from "../exit-status.ts";
import { explain } from "../failure.ts";
import { note } from "../output.ts";
import { openRemote, type Remote, type RemoteOptions } from "../remote.ts";
import { isTransient, type RetryOptions, withRetries } from "../retry.ts";
import { interruption } from "../signals.ts";

/** Milliseconds between two reads of the key. */
const INTERVAL = 5_000;

/** The time of a use is that of the begin of its minute, and shown within 15 s. */
const [PRECISION, DELAY] = [60_000, 15_000];

/** How long to retry while the server is unreachable, in milliseconds. */
const RETRY_FOR = 600_000;

const FINAL: readonly KeyStatus[] = [KeyStatus.REVOKED, KeyStatus.EXPIRED];

export interface WaitOptions extends RemoteOptions {
  readonly waitIdle: string;
}

/** Rejects a wait that could only end with the grace period. */
export function assertWaitFits({
  waitIdle,
  gracePeriod,
}: {
  readonly waitIdle: string;
  readonly gracePeriod?: string;
}) {
  const idle = parseDuration(waitIdle, "--wait-idle");
  if (gracePeriod === undefined) throw invalidArgument("--wait-idle", "requires --grace-period");
  if (idle >= parseDuration(gracePeriod, "--grace-period"))
    throw invalidArgument("--wait-idle", "must be shorter than --grace-period");
}

/**
 * Waits until the older secrets of a key have not been used for so long, and ends their grace period. Returns the key then; otherwise sets the
 * exit status: the grace period has ended before, or the wait was interrupted.
 */
export async function endGraceWhenIdle(keyId: string, options: WaitOptions): Promise<IssuedApiKey | undefined> {
  const idle = parseDuration(options.waitIdle, "--wait-idle");
  const say = options.json === true ? () => {} : note;
  const { issuedApiKeys } = await openRemote(options);
  const signal = interruption();
  const retry: RetryOptions = {
    ...{ retryFor: RETRY_FOR, signal },
    onUnreachable: (error) => say(`${explain(error)}; retrying`),
  };
  const waitUntilIdle = () => areIdle(issuedApiKeys, keyId, idle, say, retry);
  try {
    if (await waitUntilIdle()) {
      // A retry waits again if an older secret has been used meanwhile.
      const end = () => waitUntilIdle().then(() => issuedApiKeys.endGracePeriod({ keyId }));
      const key = await withRetries(end, retry);
      say(`unused for ${options.waitIdle}: the older secrets are invalid now`);
      return key;
    }
    say(`the grace period has ended, before its secrets were unused for ${options.waitIdle}`);
    process.exitCode = EXIT_STATUS.failed;
  } catch (error) {
    const remedy = `keyhold keys end-grace ${keyId} --wait-idle ${options.waitIdle}`;
    if (signal.aborted || isTransient(error)) say(`the grace period goes on; to wait again, run: ${remedy}`);
    if (!signal.aborted) throw error;
    process.exitCode = EXIT_STATUS.interrupted;
  }
  return undefined;
}

/** Resolves when the older secrets have been unused for so long: with false if their grace periods have ended meanwhile. */
async function areIdle(
  keys: Remote["issuedApiKeys"],
  keyId: string,
  idle: number,
  say: (text: string) => void,
  retry: RetryOptions,
): Promise<boolean> {
  const { signal } = retry;
  let waitingUntil: number | undefined;
  for (;;) {
    const { key, now } = await withRetries(() => read(keys, keyId, signal), retry);
    if (key.previousSecrets.length === 0) return waitingUntil === undefined;
    const until = lastUseOf(key) + idle + DELAY;
    // No grace period of a key that is revoked or has expired can be ended: the call says so.
    if (until <= now || FINAL.includes(key.status)) return true;
    if (until !== waitingUntil)
      say(`waiting until ${timeText(until)}, unless an older secret is used; ${usesText(key)}`);
    waitingUntil = until;
    await sleep(Math.min(until - now, INTERVAL), undefined, { signal });
  }
}

/** Returns a key, and the time of the server that has read it: the clock of this machine may be wrong. */
async function read(keys: Remote["issuedApiKeys"], keyId: string, signal: AbortSignal) {
  let now = systemClock.now();
  const onHeader = (headers: Headers) => {
    now = Date.parse(headers.get("date") ?? "") || now;
  };
  return { key: await keys.getIssuedApiKey({ keyId }, { signal, onHeader }), now };
}

/** Returns the latest time at which an older secret may have been used, as far as the key shows it: at least that of the rotation. */
function lastUseOf({ rotateTime, previousSecrets }: IssuedApiKey): number {
  const uses = previousSecrets.map(({ lastUsedTime }) => (lastUsedTime ? timestampMs(lastUsedTime) + PRECISION : 0));
  return Math.max(rotateTime ? timestampMs(rotateTime) : 0, ...uses);
}

function usesText({ previousSecrets }: IssuedApiKey): string {
  return previousSecrets
    .map(({ hint, lastUsedTime }) => {
      const use = lastUsedTime ? `last used at ${timeText(timestampMs(lastUsedTime))}` : "not used since the rotation";
      return `${hint || "the older secret"}: ${use}`;
    })
    .join(", ");
}

function timeText(time: number): string {
  return formatRfc3339(Math.ceil(time / 1000) * 1000);
}
