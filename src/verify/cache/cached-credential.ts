import type { Stamp } from "../../domain/key-lookup.ts";
import { type ActorLimits, chargedLimits, type Limit } from "../../domain/rate-limit.ts";
import { responseSize } from "../../domain/response-size.ts";
import { ANSWER_FORMS, type AnswerForm, type EncodedAnswers, type Valid } from "../../domain/verdict.ts";
import { memoizeFirst } from "../../lib/memoize.ts";
import type { Controls } from "../checks.ts";
import type { Presentation } from "../context.ts";
import { credentialOf } from "../evaluate.ts";
import { type Loaded, oldVersionOf } from "../identified.ts";
import { minuteOf, type NoteUse } from "../last-used.ts";
import { decodeLimit, encodeLimit } from "./limit-codec.ts";
import { CREDENTIAL_TYPES, decodeLoaded, encodeLoaded } from "./loaded-codec.ts";
import { packStamp } from "./stamp-codec.ts";

/**
 * The cached form of a credential with its key: words of 32 bits, the key id, then sections, each a word for its kind and length, and its
 * content: lists and everything else as JSON, and encoded answers. Words are little-endian, but for the first five, which the cache reads itself
 * and which have the byte order of the machine.
 */
export const WORDS = {
  /** The stamp: `stamp-codec.ts`. */
  count: 0,
  ofKey: 1,
  ofName: 2,
  /** Until when the credential is in force, in milliseconds: two words. */
  validUntil: 3,
  size: 5,
  secretVersion: 6,
  /** Its first byte is the type of the credential, the second one has the flags. */
  type: 7,
  /** The last minute in which a use was recorded, since the epoch; 0: none. */
  usedMinute: 8,
} as const;

const WORD = 4;
const KEY_ID_AT = 9 * WORD;
const KEY_ID_SIZE = 36;
const SECTIONS_AT = KEY_ID_AT + KEY_ID_SIZE;

const IS_IMPORTED = 1;
const HAS_SECRET = 2;
const IS_DISABLED = 4;
const HAS_LIMITS = 8;
const HAS_ACTOR_LIMITS = 16;
const HAS_OLD_SECRET = 32;

const FIRST_TOKEN_TYPE = CREDENTIAL_TYPES.indexOf("JWT");

const SCOPES = 0;
const CONTENT = 1;
const CIDRS = 2;
const AUDIENCE = 3;
const LIMITS = 4;
const ACTOR_LIMITS = 5;
const FIRST_ANSWER = 6;
/** Bits of a section's head before its length. */
const KIND_BITS = 8;
const KIND = 2 ** KIND_BITS - 1;

/** Bytes of a typical answer in addition to the actor, scopes and metadata. Room for it is left: an entry that grows takes its place twice. */
const ANSWER_SIZE = 112;

/** Lists of scopes, addresses and services occur in few combinations, as the same arrays. More, and longer ones, are parsed on each use. */
const MAX_LISTS = 4_096;
/** The JSON of 64 blocks of IPv6 addresses, which take much longer to compile than to match, is not longer. */
const MAX_LIST_LENGTH = 4_096;
const parseList = (json: string): readonly string[] => Object.freeze(JSON.parse(json));
const listOf = memoizeFirst(MAX_LISTS, parseList);

const parseLimits = memoizeFirst(MAX_LISTS, (json): readonly Limit[] =>
  Object.freeze(JSON.parse(json).map(decodeLimit)),
);

const actorLimitsOf = memoizeFirst(MAX_LISTS, (json): ActorLimits => {
  const [actorId, ...limits] = JSON.parse(json);
  return Object.freeze({ actorId, limits: Object.freeze(limits.map(decodeLimit)) });
});

/** After every time. */
const FOREVER = 2 ** 53;

/** Returns whether the time alone can end what a credential is worth. A key that is to be adopted is decoded in each verification. */
function isInForce({ stored, secret, adoption }: Loaded): boolean {
  return secret !== undefined && stored.key.revokeTime === null && adoption === null;
}

/** Larger entries, of which the store would take few, are not cached. Bytes. */
const MAX_SIZE = 2 ** 17;

/** Entries are encoded here, and copied from here at once: buffers for each would cost more than encoding them. */
const scratch = Buffer.alloc(MAX_SIZE);
const scratchWords = new Uint32Array(scratch.buffer, scratch.byteOffset, KEY_ID_AT / WORD);

/**
 * Returns the bytes of a credential with its key, whose id is a UUID, until the next call; undefined if they are too many.
 */
export function encodeCredential(loaded: Loaded, stamp: Stamp): Buffer | undefined {
  const { identified, stored, secret } = loaded;
  const { keyId, kind, actorId, metadata, disableTime, allowedCidrs } = stored.key;
  const credential = credentialOf(identified, stored, secret ?? NO_SECRET);
  const { keyLimits, actorLimits } = credential;
  const audience = identified.token?.audience;
  const until = isInForce(loaded) ? Math.max(0, credential.expireTime?.getTime() ?? FOREVER) : 0;
  const flags =
    (kind === "imported" ? IS_IMPORTED : 0) |
    (secret === undefined ? 0 : HAS_SECRET) |
    (disableTime === null ? 0 : IS_DISABLED) |
    (keyLimits === null ? 0 : HAS_LIMITS) |
    (actorLimits === undefined ? 0 : HAS_ACTOR_LIMITS) |
    (oldVersionOf(secret) === null ? 0 : HAS_OLD_SECRET);
  scratchWords.set(packStamp(stamp), WORDS.count);
  scratchWords[WORDS.validUntil] = until % 2 ** 32;
  scratchWords[WORDS.validUntil + 1] = Math.floor(until / 2 ** 32);
  const size = responseSize({ actorId, metadata, scopes: credential.scopes, limits: chargedLimits(credential) });
  scratch.writeUInt32LE(size, WORDS.size * WORD);
  scratch.writeUInt32LE(secret?.version ?? 0, WORDS.secretVersion * WORD);
  scratch.writeUInt32LE(CREDENTIAL_TYPES.indexOf(identified.credentialType) | (flags << 8), WORDS.type * WORD);
  scratch.writeUInt32LE(0, WORDS.usedMinute * WORD);
  scratch.write(keyId, KEY_ID_AT, "latin1");
  let end = writeSection(SCOPES, credential.scopes, SECTIONS_AT);
  end = writeSection(CONTENT, encodeLoaded(loaded), end);
  const room = ANSWER_SIZE + end - SECTIONS_AT - 2 * WORD;
  if (allowedCidrs !== null) end = writeSection(CIDRS, allowedCidrs, end);
  if (audience !== undefined) end = writeSection(AUDIENCE, audience, end);
  if (keyLimits !== null) end = writeSection(LIMITS, keyLimits.map(encodeLimit), end);
  if (actorLimits !== undefined)
    end = writeSection(ACTOR_LIMITS, [actorLimits.actorId, ...actorLimits.limits.map(encodeLimit)], end);
  if (!(end + room <= MAX_SIZE)) return undefined;
  scratch.fill(0, end, end + room);
  return scratch.subarray(0, end + room);
}

const NO_SECRET = { version: 0, expireTime: null };

/** UTF-8 bytes per UTF-16 code unit, at most. */
const MAX_UNIT_SIZE = 3;

/** Writes a value as JSON and returns the end; NaN if it may not fit. */
function writeSection(kind: number, value: unknown, at: number): number {
  const json = JSON.stringify(value);
  if (!(at + WORD + json.length * MAX_UNIT_SIZE <= MAX_SIZE)) return Number.NaN;
  const length = scratch.write(json, at + WORD, "utf8");
  scratch.writeUInt32LE((kind | (length << KIND_BITS)) >>> 0, at);
  return at + WORD + length;
}

/** Returns a section with an answer. */
function answerSection(form: AnswerForm, answer: Uint8Array): Buffer {
  const head = Buffer.alloc(WORD);
  head.writeUInt32LE((kindOf(form) | (answer.length << KIND_BITS)) >>> 0);
  return Buffer.concat([head, answer]);
}

/** Returns the first word of a section; 0: there is none. */
function headAt(bytes: Buffer, at: number): number {
  return at + WORD <= bytes.length ? bytes.readUInt32LE(at) : 0;
}

/** Returns where a section begins; if there is none, the end of the sections. Zeros may follow it, where there is room for another one. */
function seek(bytes: Buffer, kind: number): number {
  for (let at = SECTIONS_AT; ; ) {
    const head = headAt(bytes, at);
    if (head === 0 || (head & KIND) === kind) return at;
    at += WORD + (head >>> KIND_BITS);
  }
}

/** Returns where to add a section; undefined if there is one of this kind, as when a batch repeats a credential. */
export function placeFor(section: Buffer, bytes: Buffer): number | undefined {
  const at = seek(bytes, section[0] ?? 0);
  return headAt(bytes, at) === 0 ? at : undefined;
}

/** Returns the kind of the section with an answer. */
function kindOf(form: AnswerForm): number {
  return FIRST_ANSWER + ANSWER_FORMS.indexOf(form);
}

/** Where a cached credential is from. */
export interface Entries {
  /** Returns a view of the entry, if it still has this stamp. */
  entryOf(name: string, stamp: Stamp): Buffer | undefined;
  /** Adds a section to it, if it has none of this kind. */
  append(name: string, stamp: Stamp, section: Buffer): void;
}

/**
 * A cached credential with its key. While it `isInForce`, it is itself the verdict on the credential; most fields are decoded on use, which
 * protocols do not need once they have an encoded answer.
 */
export class CachedCredential implements Valid, Controls, EncodedAnswers {
  readonly valid = true;
  readonly name: string;
  readonly stamp: Stamp;
  /** Milliseconds. */
  readonly #validUntil: number;
  /** Its own copy: the bytes of the cache may move. */
  readonly #bytes: Buffer;
  readonly #entries: Entries;
  #keyId: string | undefined;
  #loaded: Loaded | undefined;
  #keyLimits: readonly Limit[] | undefined;

  constructor(name: string, stamp: Stamp, validUntil: number, bytes: Buffer, entries: Entries) {
    this.name = name;
    this.stamp = stamp;
    this.#validUntil = validUntil;
    this.#bytes = bytes;
    this.#entries = entries;
  }

  /** Returns whether the credential passes all checks of the key and the time (`now`, milliseconds), but not where it is presented. */
  isInForce(now: number): boolean {
    return now < this.#validUntil;
  }

  /** Returns the same in memory of its own: a part of Node's pool would retain all of that. */
  retainable(): CachedCredential {
    const bytes = Buffer.allocUnsafeSlow(this.#bytes.length);
    bytes.set(this.#bytes);
    return new CachedCredential(this.name, this.stamp, this.#validUntil, bytes, this.#entries);
  }

  get loaded(): Loaded {
    this.#loaded ??= this.#decode();
    return this.#loaded;
  }

  get answers(): EncodedAnswers {
    return this;
  }

  get keyId(): string {
    this.#keyId ??= this.#bytes.toString("latin1", KEY_ID_AT, SECTIONS_AT);
    return this.#keyId;
  }

  get credentialType() {
    return CREDENTIAL_TYPES[this.#type] ?? "ISSUED_API_KEY";
  }

  get isDisabled(): boolean {
    return (this.#flags & IS_DISABLED) !== 0;
  }

  get allowedCidrs(): readonly string[] | null {
    return this.#list(CIDRS) ?? null;
  }

  get audience(): readonly string[] | undefined | null {
    return this.#type < FIRST_TOKEN_TYPE ? null : this.#list(AUDIENCE);
  }

  get keyLimits(): readonly Limit[] | null {
    if ((this.#flags & HAS_LIMITS) === 0) return null;
    this.#keyLimits ??= parseLimits(this.#section(LIMITS)?.toString() ?? "[]");
    return this.#keyLimits;
  }

  get actorLimits(): ActorLimits | undefined {
    if ((this.#flags & HAS_ACTOR_LIMITS) === 0) return undefined;
    const json = this.#section(ACTOR_LIMITS);
    return json && actorLimitsOf(json.toString());
  }

  get secretVersion(): number {
    return this.#word(WORDS.secretVersion);
  }

  get scopes(): readonly string[] {
    return this.#list(SCOPES) ?? [];
  }

  get key() {
    return this.loaded.stored.key;
  }

  get expireTime() {
    return this.#decoded.expireTime;
  }

  get token() {
    return this.#decoded.token;
  }

  get size(): number {
    return this.#word(WORDS.size);
  }

  answer(form: AnswerForm): Buffer | undefined {
    return this.#section(kindOf(form));
  }

  keep(form: AnswerForm, answer: Uint8Array): void {
    this.#entries.append(this.name, this.stamp, answerSection(form, answer));
  }

  /** Records a use by a client at `now`, milliseconds, once a minute. */
  recordUse(now: number, record: NoteUse, client: Presentation): void {
    const minute = minuteOf(now);
    if (this.#word(WORDS.usedMinute) >= minute) return;
    const oldSecret = (this.#flags & HAS_OLD_SECRET) === 0 ? null : this.secretVersion;
    if (!record(this.keyId, oldSecret, client)) return;
    for (const bytes of [this.#bytes, this.#entries.entryOf(this.name, this.stamp)])
      bytes?.writeUInt32LE(minute, WORDS.usedMinute * WORD);
  }

  get #decoded(): Valid {
    const { identified, stored, secret = NO_SECRET } = this.loaded;
    return credentialOf(identified, stored, secret);
  }

  get #type(): number {
    return this.#bytes[WORDS.type * WORD] ?? 0;
  }

  get #flags(): number {
    return this.#bytes[WORDS.type * WORD + 1] ?? 0;
  }

  #decode(): Loaded {
    const flags = this.#flags;
    const loaded = decodeLoaded(this.#section(CONTENT)?.toString() ?? "", {
      keyId: this.keyId,
      kind: (flags & IS_IMPORTED) === 0 ? "issued" : "imported",
      credentialType: this.credentialType,
      ...{ scopes: this.scopes, allowedCidrs: this.allowedCidrs, audience: this.audience ?? undefined },
      ...{ limits: this.keyLimits ?? [], actorLimits: this.actorLimits },
      secretVersion: (flags & HAS_SECRET) === 0 ? null : this.secretVersion,
    });
    loaded.stored.stamp = this.stamp;
    return loaded;
  }

  #list(kind: number): readonly string[] | undefined {
    const json = this.#section(kind);
    if (json === undefined) return undefined;
    return json.length > MAX_LIST_LENGTH ? parseList(json.toString()) : listOf(json.toString());
  }

  #word(index: number): number {
    return this.#bytes.readUInt32LE(index * WORD);
  }

  /** Returns a view. */
  #section(kind: number): Buffer | undefined {
    const bytes = this.#bytes;
    const at = seek(bytes, kind);
    const head = headAt(bytes, at);
    return head === 0 ? undefined : bytes.subarray(at + WORD, at + WORD + (head >>> KIND_BITS));
  }
}
