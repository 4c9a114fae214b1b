import { createSecretKey } from "node:crypto";
import { KeyholdError } from "../../domain/errors.ts";
import type { KeySecret } from "../../domain/key.ts";
import type { HashScheme } from "../../domain/raw-key-hash.ts";
import { hmacSha256, type KeyRing } from "../../domain/server-keys.ts";
import { equalBytes } from "../../lib/bytes.ts";
import { type Monotonic, systemMonotonic } from "../../lib/clock.ts";
import { ClockCache } from "../../lib/clock-cache.ts";
import { HmacKey } from "../../lib/hmac.ts";
import type { Random } from "../../lib/random.ts";
import { schemeDigest, slowHashParts } from "../digest.ts";
import { parseStoredParameters } from "../phc/stored-parameters.ts";
import { hasOwnHash } from "./compute.ts";
import { HashQueue, type HashQueueOptions, type Turn } from "./hash-queue.ts";
import { assertComputable } from "./support.ts";

export interface SlowHashesOptions extends HashQueueOptions {
  /** The ring "secret-digest". */
  readonly ring: KeyRing;
  readonly random: Random;
}

export type SlowHashes = ReturnType<typeof createSlowHashes>;

/** Pairs of each sort that are remembered, of about 150 bytes each. */
const MAX_PAIRS = 65_536;

/** Sources and keys of which it is remembered when a raw key was wrong, and for how many milliseconds it counts. */
const MAX_FAILURES = 8_192;
const FAILURE_AGE = 60_000;

const KEY_SIZE = 32;

/** Computes slow hashes beside the event loop. No thread starts before the first one is needed. */
export function createSlowHashes({ ring, random, ...options }: SlowHashesOptions) {
  const now: Monotonic = options.now ?? systemMonotonic;
  const queue = new HashQueue(options);
  /** Computations and those that failed; calls that ended with `OVERLOADED`, that a pair in memory answered, and that joined a computation. */
  const counts = { computed: 0, failed: 0, rejected: 0, remembered: 0, shared: 0 };
  /** Names a raw key and a secret without revealing either. */
  const pairKey = new HmacKey(createSecretKey(random.bytes(KEY_SIZE)));
  const wrongPairs = new ClockCache<true>(MAX_PAIRS);
  const rightPairs = new ClockCache<true>(MAX_PAIRS);
  /** When a pair was first tried that was rejected since: it keeps its place when it is tried again. */
  const rejectedPairs = new ClockCache<number>(MAX_PAIRS);
  /** When the last raw key of a source, or for a key, was wrong. */
  const failures = new ClockCache<number>(MAX_FAILURES);
  const inFlight = new Map<string, Promise<boolean>>();

  const hasFailed = (name: string) => now() - (failures.get(name) ?? Number.NEGATIVE_INFINITY) < FAILURE_AGE;

  function turnOf(source: string, secret: string, pair: string): Turn {
    const suspicion = [source, secret].filter(hasFailed).length as Turn["suspicion"];
    return { suspicion, group: `${secret} ${source}`, since: rejectedPairs.get(pair) ?? now() };
  }

  async function compute(parameters: string, message: Uint8Array<ArrayBuffer>, turn: Turn): Promise<Uint8Array> {
    try {
      const output = await queue.compute({ parameters, message }, turn);
      counts.computed++;
      return output;
    } catch (error) {
      counts[isOverloaded(error) ? "rejected" : "failed"]++;
      throw error;
    }
  }

  async function computeMatch(
    rawKey: string,
    scheme: HashScheme,
    { hash, digest }: KeySecret,
    turn: Turn,
  ): Promise<boolean> {
    const key = ring.find(digest.keyId);
    if (key === undefined || typeof hash?.parameters !== "string") return false;
    const { parameters } = hash;
    // Not from Node's shared buffer pool, which cannot be transferred.
    const message = new TextEncoder().encode(scheme.prefix + rawKey + scheme.suffix);
    if (!hasOwnHash(parseStoredParameters(parameters), message)) return false;
    const output = await compute(parameters, message, turn);
    return equalBytes(hmacSha256(key, ...slowHashParts(schemeDigest(scheme), parameters, output)), digest.digest);
  }

  /**
   * Returns whether a secret with a slow hash is that of the raw key. What was found out before is answered at once, and what a source presents
   * that has presented no wrong raw key in the last minute, or to a key that has been presented none, waits less. Rejects with `OVERLOADED` if too
   * many wait, and with another error if the hash cannot be computed.
   */
  function matches(rawKey: string, scheme: HashScheme, secret: KeySecret, source = ""): Promise<boolean> {
    if (!rawKey.isWellFormed()) return Promise.resolve(false);
    const pair = pairKey.digest([schemeDigest(scheme), secret.digest.digest, rawKey]).toString("latin1");
    const isRight = rightPairs.get(pair) ?? false;
    if (isRight || wrongPairs.get(pair)) {
      counts.remembered++;
      return Promise.resolve(isRight);
    }
    const current = inFlight.get(pair);
    if (current !== undefined) {
      counts.shared++;
      return current;
    }
    const secretName = Buffer.from(secret.digest.digest).toString("latin1");
    const turn = turnOf(source, secretName, pair);
    const remember = (isMatch: boolean) => {
      (isMatch ? rightPairs : wrongPairs).set(pair, true);
      if (!isMatch) for (const name of [source, secretName]) failures.set(name, now());
      return isMatch;
    };
    const match = computeMatch(rawKey, scheme, secret, turn)
      .then(remember, (error: unknown) => {
        if (isOverloaded(error)) rejectedPairs.set(pair, turn.since);
        throw error;
      })
      .finally(() => inFlight.delete(pair));
    inFlight.set(pair, match);
    return match;
  }

  return {
    matches,
    /** Throws `INVALID_ARGUMENT` if this server cannot compute such a hash. */
    assertSupported: assertComputable((parameters, message) =>
      compute(parameters, message, { suspicion: 0, group: "", since: now() }),
    ),
    /** Rejects what is not computed yet, and resolves when all threads have ended. */
    close: () => queue.close(),
    /** Numbers for metrics: `running` and `waiting` are current, the others count since the start. */
    get stats() {
      return { running: queue.running, waiting: queue.waiting, ...counts };
    },
  };
}

function isOverloaded(error: unknown): boolean {
  return error instanceof KeyholdError && error.code === "OVERLOADED";
}
