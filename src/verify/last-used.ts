import { blockOf } from "../lib/cidr.ts";
import type { Clock } from "../lib/clock.ts";
import { formatAddress, parseAddress } from "../lib/ip-address.ts";

/** A use of a key in a minute. */
export interface Use {
  readonly keyId: string;
  /** Version of the older secret that the credential is, or was derived from; null: it is the current one. */
  readonly oldSecret: number | null;
  /** Of the client, as it is to be stored; null: it is not. */
  readonly address: string | null;
}

/** Stores uses in this minute, of which a key may have several; never moves a time back. */
export type StoreLastUsed = (uses: readonly Use[], minute: Date) => Promise<void>;

/** Who uses a key. */
interface Client {
  readonly clientIp?: string | undefined;
}

/** Notes a use of a key, of an older secret if its version is given, by a client. Returns whether it will be stored. */
export type NoteUse = (keyId: string, oldSecret?: number | null, client?: Client) => boolean;

export type LastUsed = ReturnType<typeof createLastUsed>;

const MINUTE = 60_000;

/** Returns the minute of a time in milliseconds, since the epoch: the precision of `last_used_time`. */
export function minuteOf(time: number): number {
  return Math.floor(time / MINUTE);
}

/** Maximum number of keys that wait to be written; the uses of others wait for the next verification. */
const MAX_KEYS = 30_000;

type AddressForm = (client: Client) => string | null;

/** What is stored of the address of a client, by the setting. */
export const ADDRESS_FORMS = {
  off: () => null,
  truncated: ({ clientIp = "" }) => blockOf(clientIp, 24, 48),
  full: ({ clientIp = "" }) => {
    const address = parseAddress(clientIp);
    return address === undefined ? null : formatAddress(address);
  },
} satisfies Record<string, AddressForm>;

/** Tracks which keys were used, so that verification itself writes nothing. `addressOf` returns what to store of an address. */
export function createLastUsed(touch: StoreLastUsed, clock: Clock, addressOf: AddressForm = ADDRESS_FORMS.off) {
  let noted = new Map<string, Use & { readonly minute: number }>();
  const note: NoteUse = (keyId, oldSecret = null, client = {}) => {
    const name = oldSecret === null ? keyId : `${keyId} ${oldSecret}`;
    const minute = minuteOf(clock.now());
    const last = noted.get(name);
    if (last === undefined && noted.size >= MAX_KEYS) return false;
    if (last === undefined || last.minute < minute)
      noted.set(name, { keyId, oldSecret, address: addressOf(client), minute });
    return true;
  };
  return {
    note,
    /** Number of uses to be written. */
    get size() {
      return noted.size;
    },
    /** Writes the uses noted since the last call. On failure they are kept for the next call. */
    flush: async (): Promise<void> => {
      const batch = noted;
      noted = new Map();
      try {
        for (const [minute, uses] of Map.groupBy(batch.values(), (use) => use.minute)) {
          for (const part of partsOf(uses)) await touch(part, new Date(minute * MINUTE));
        }
      } catch (error) {
        for (const [name, use] of batch) if (!noted.has(name)) noted.set(name, use);
        throw error;
      }
    },
  };
}

/** Uses per write. Meanwhile none of their keys can be changed, and a revocation must not wait for thousands of others. */
const MAX_TOUCHED = 200;

function* partsOf(uses: readonly Use[]): Generator<readonly Use[]> {
  for (let start = 0; start < uses.length; start += MAX_TOUCHED) yield uses.slice(start, start + MAX_TOUCHED);
}
