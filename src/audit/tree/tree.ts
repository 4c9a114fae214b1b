import { createPublicKey, type KeyObject } from "node:crypto";
import { KeyholdError } from "../../domain/errors.ts";
import type { KeyRing } from "../../domain/server-keys.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { Random } from "../../lib/random.ts";
import { mapInSlices } from "../../lib/time-slices.ts";
import type { AuditEvent } from "../event.ts";
import type { AuditStore } from "../log.ts";
import { digestOf, entryOf, splitHashes } from "./entry.ts";
import { edgeOf, HASH_SIZE, leafHash, TILE_WIDTH, type Tile, type TilePosition, TreeEdge } from "./merkle.ts";
import { checkpointText, parseVerifierKey, signNote } from "./note.ts";
import { generateTreeKey, type TreeKey, unwrapTreeKey } from "./tree-key.ts";

/** The level of the tiles of digests, which are below the hashes of the entries. */
export const DIGESTS = -1;

/** The state of the tree in the database. */
export interface TreeHead {
  readonly origin: string;
  /** Events that the tree has, and that the log has. */
  readonly size: number;
  readonly logSize: number;
  /** Of this size; null: the tree is empty. */
  readonly checkpoint: string | null;
  readonly key: TreeKey | null;
}

/** What a run of the integration adds. */
export interface Growth {
  readonly from: number;
  readonly to: number;
  /** The further hashes of each tile. */
  readonly tiles: readonly Tile[];
  readonly checkpoint: string;
}

/** The tree in the database. */
export interface TreeStore {
  head(): Promise<TreeHead>;
  /** Stores the key unless there is one. */
  addKey(key: TreeKey): Promise<void>;
  /** Replaces the wrapped form of the key if it is still wrapped under the server key `before`. */
  rewrapKey(key: TreeKey, before: string): Promise<void>;
  /** Returns the hashes of a tile as far as the tree has them, concatenated; empty if there are none. */
  tile(position: TilePosition): Promise<Uint8Array>;
  /** Adds the growth in one transaction. Returns false, and adds nothing, if the tree does not have the size `from`. */
  grow(growth: Growth): Promise<boolean>;
  /** Records the checkpoint in the log unless an hour has not passed, or it has nothing new. Returns whether it did. */
  recordCheckpoint(): Promise<boolean>;
}

export interface TreeContext {
  readonly store: TreeStore;
  readonly events: Pick<AuditStore, "sequence" | "read">;
  /** The key ring "signing-key-wrap". */
  readonly ring: KeyRing;
  readonly random: Random;
  /** Returns an event as the API states it, without empty fields. */
  readonly toJson: (event: AuditEvent) => JsonObject;
}

/** Events that are added at once. */
const MAX_INTEGRATED = 4 * TILE_WIDTH;

/** Events that are read at once: their rows are parsed in one tick of the event loop, within 2 ms. */
const PAGE = TILE_WIDTH / 4;

/** Milliseconds of one tick of the event loop. Verifications wait for it, and nobody for the tree. */
const SLICE = 1;

/**
 * Adds the events of the log to the tree, and signs its head. Several nodes may do so at once: one of them adds, the others begin again. Returns
 * the head and the number of events that this call has added. `onHead` is called with each head that it finds, of which the last is returned.
 */
export async function integrate(
  context: TreeContext,
  onHead: (head: TreeHead) => void = () => {},
): Promise<{ readonly head: SignedHead; readonly added: number }> {
  const { store } = context;
  for (let added = 0; ; ) {
    const head = await store.head();
    onHead(head);
    const { size, logSize, checkpoint, key } = head;
    if (key === null) {
      // The owner of the database has deleted it.
      await createTreeKey(context);
      continue;
    }
    if (size === logSize && checkpoint !== null) return { head: { ...head, checkpoint, key }, added };
    const growth = await grow(context, head, key);
    if (await store.grow(growth)) added += growth.to - growth.from;
  }
}

/** Creates the key that signs the head, unless there is one. */
export async function createTreeKey({ store, ring, random }: TreeContext): Promise<void> {
  const { origin, key } = await store.head();
  if (key === null) await store.addKey(generateTreeKey(origin, ring, random));
}

/** The head of a tree with its signature. */
export type SignedHead = TreeHead & { readonly checkpoint: string; readonly key: TreeKey };

async function grow(context: TreeContext, { origin, size, logSize }: TreeHead, key: TreeKey): Promise<Growth> {
  const { store, events, ring } = context;
  const privateKey = unwrapTreeKey(key, ring);
  const verifier = parseVerifierKey(key.verifierKey);
  if (verifier === null || !isOf(privateKey, verifier.publicKey))
    throw new Error("the audit log key does not match its public key");
  const tiles = new Map<string, Tile & { readonly hashes: Uint8Array[] }>();
  const add = ({ level, index }: TilePosition, hash: Uint8Array) => {
    const name = `${level}/${index}`;
    const tile = tiles.get(name) ?? { level, index, hashes: [] };
    tile.hashes.push(hash);
    tiles.set(name, tile);
  };
  const edge = new TreeEdge(size, await Promise.all(edgeOf(size).map((tile) => readEdge(store, tile))), add);
  for (let isLast = false; !isLast && edge.size < size + MAX_INTEGRATED; ) {
    const page = await events.read(edge.size, PAGE);
    isLast = page.length < PAGE;
    for (const leaf of await mapInSlices(page, (event) => leafOf(event, context.toJson(event)), SLICE)) {
      if (leaf?.seq !== edge.size) throw lost(edge.size);
      add({ level: DIGESTS, index: Math.floor(leaf.seq / TILE_WIDTH) }, leaf.digest);
      edge.append(leaf.hash);
    }
  }
  if (edge.size === size && size < logSize) throw lost(size);
  const text = checkpointText({ origin, size: edge.size, root: edge.root() });
  const checkpoint = signNote(text, verifier, privateKey);
  return { from: size, to: edge.size, tiles: [...tiles.values()], checkpoint };
}

/** Returns what the tree has of an event; null if it was erased. */
function leafOf({ seq }: AuditEvent, json: JsonObject) {
  const digest = digestOf(json);
  return digest === null ? null : { seq, digest, hash: leafHash(entryOf(seq, json, digest)) };
}

function lost(seq: number): Error {
  return new Error(`the audit log has lost event ${seq} before the tree had it`);
}

function isOf(privateKey: KeyObject, publicKey: KeyObject): boolean {
  return createPublicKey(privateKey).equals(publicKey);
}

async function readEdge(store: TreeStore, { width, ...position }: TilePosition & { readonly width: number }) {
  const hashes = width === 0 ? [] : splitHashes(await store.tile(position));
  // Others may have added since.
  return hashes.slice(0, width);
}

/** Returns this number of hashes of a tile, concatenated; null if the tree does not have them. */
export async function readTile(
  { store }: TreeContext,
  position: TilePosition,
  width: number,
): Promise<Uint8Array | null> {
  const bytes = await store.tile(position);
  return bytes.length < width * HASH_SIZE ? null : bytes.subarray(0, width * HASH_SIZE);
}

/** Adds every change that is committed to the tree, and returns its head. */
export async function currentHead(context: TreeContext): Promise<SignedHead> {
  await context.events.sequence();
  return (await integrate(context)).head;
}

/**
 * Returns the entries of a tile from its start, or from `first`; null if the tree does not have them, or the log does not have their events any
 * more. They are made from the events, so that a changed event does not have the hash that the tree has.
 */
export async function readEntries(
  context: TreeContext,
  index: number,
  width: number,
  first = 0,
): Promise<Uint8Array[] | null> {
  const digests = await readTile(context, { level: DIGESTS, index }, width);
  if (digests === null) return null;
  const stored = splitHashes(digests);
  const start = index * TILE_WIDTH + first;
  const events = await context.events.read(start, width - first);
  const entries = events.flatMap((event, place) => {
    const json = context.toJson(event);
    const digest = digestOf(json) ?? stored[first + place];
    return event.seq !== start + place || digest === undefined ? [] : [entryOf(event.seq, json, digest)];
  });
  return entries.length < width - first ? null : entries;
}

/** @throws `AUDIT_EVENT_NOT_FOUND` if the log does not have the event any more */
export async function readEntry(context: TreeContext, seq: number): Promise<Uint8Array> {
  const first = seq % TILE_WIDTH;
  const [entry] = (await readEntries(context, Math.floor(seq / TILE_WIDTH), first + 1, first)) ?? [];
  if (entry === undefined) throw new KeyholdError("AUDIT_EVENT_NOT_FOUND", `the audit log has no event ${seq}`);
  return entry;
}
