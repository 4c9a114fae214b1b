import { readFile } from "node:fs/promises";
import type { AuditEvent } from "../../../gen/keyhold/v2alpha1/audit_pb.js";
import { auditEventJson } from "../../api/v2alpha1/audit.ts";
import { contentOf, digestOf, entriesOf, entryOf, splitHashes } from "../../audit/tree/entry.ts";
import { hashesAt, leafHash, TILE_WIDTH, TreeEdge } from "../../audit/tree/merkle.ts";
import { type Checkpoint, isSigned, parseCheckpoint, parseVerifierKey } from "../../audit/tree/note.ts";
import { tilePath } from "../../audit/tree/paths.ts";
import { invalidArgument } from "../../domain/errors.ts";
import { isJsonObject, parseJson } from "../../lib/json.ts";
import { write, writeJson, writeResult } from "../output.ts";
import { shownPath } from "../redact.ts";
import { openRemote, type Remote, type RemoteOptions } from "../remote.ts";
import { restJson } from "../rest-json.ts";
import { eventPages } from "./events.ts";

/** Prints the signed head of the tree, to be kept elsewhere. */
export async function checkpoint({
  verifierKey = false,
  ...options
}: RemoteOptions & { readonly verifierKey?: boolean }) {
  const { audit } = await openRemote(options);
  const head = await audit.getAuditCheckpoint({});
  if (options.json === true) return writeJson(restJson(head));
  await write(verifierKey ? `${head.verifierKey}\n` : head.checkpoint);
}

interface VerifyOptions extends RemoteOptions {
  readonly checkpoint?: readonly string[];
  readonly verifierKey?: string;
}

/** A checkpoint from a file. */
interface Kept extends Checkpoint {
  readonly file: string;
}

/** What does not agree. Names the first event or tile that is wrong. */
class Mismatch extends Error {}

/** Reads the whole log and checks that it is what the checkpoints say. Rejects with the first thing that is wrong. */
export async function verify(options: VerifyOptions): Promise<void> {
  const kept = await Promise.all((options.checkpoint ?? []).map(readKept));
  const remote = await openRemote(options);
  const head = await readHead(remote, options.verifierKey);
  for (const one of kept) {
    if (one.origin !== head.origin)
      throw new Mismatch(`${shownPath(one.file)} is a checkpoint of ${one.origin}, and this log is ${head.origin}`);
    if (one.size > head.size)
      throw new Mismatch(
        `events were removed from the end of the log: it has ${head.size}, and had ${one.size} at ${shownPath(one.file)}`,
      );
  }
  const { first, erased } = await new LogReader(remote, head, kept).check();
  const result = { origin: head.origin, size: head.size, first_seq: first, erased, checkpoints: kept.length };
  const text = [
    `The log has the ${head.size} events of its checkpoint, unchanged and in their order.`,
    ...(first > 0 ? [` Of the first ${first}, which were pruned, only the hashes are left.`] : []),
    ...(erased > 0 ? [` The content of ${erased} was erased.`] : []),
    ...kept.map(({ file, size }) => ` Its first ${size} are those of ${shownPath(file)}.`),
  ];
  await writeResult(options, result, text.join("\n"));
}

async function readKept(file: string): Promise<Kept> {
  const parsed = parseCheckpoint(await readFile(file, "utf8"));
  if (parsed === null) throw invalidArgument("--checkpoint", `${shownPath(file)} is not a checkpoint`);
  return { ...parsed, file };
}

async function readHead({ audit }: Remote, trustedKey: string | undefined): Promise<Checkpoint> {
  const { checkpoint: note, verifierKey } = await audit.getAuditCheckpoint({});
  const verifier = parseVerifierKey(trustedKey ?? verifierKey);
  if (verifier === null) throw invalidArgument("--verifier-key", "is not a verifier key such as origin+1a2b3c4d+AZ…");
  const head = parseCheckpoint(note);
  if (head === null || !isSigned(note, verifier) || head.origin !== verifier.name)
    throw new Mismatch(
      `the checkpoint of the server is not signed with the key ${trustedKey === undefined ? "that the server states" : "of --verifier-key"}`,
    );
  return head;
}

/** Reads a log, event by event and tile by tile, and builds its tree. */
class LogReader {
  readonly #remote: Remote;
  readonly #head: Checkpoint;
  readonly #kept: readonly Kept[];
  /** Tiles above the leaves, by their path when they are complete. */
  readonly #above = new Map<string, Uint8Array[]>();
  readonly #edge = new TreeEdge(0, [], ({ level, index }, hash) => {
    if (level === 0) return;
    const hashes = this.#above.get(`${level}/${index}`) ?? [];
    this.#above.set(`${level}/${index}`, [...hashes, hash]);
  });
  #erased = 0;
  /** Events that the events of erasures count. */
  #recordedErasures = 0;
  /** Where the log began after a pruning. */
  readonly #pruned = new Set<string>();

  constructor(remote: Remote, head: Checkpoint, kept: readonly Kept[]) {
    this.#remote = remote;
    this.#head = head;
    this.#kept = kept;
  }

  async check() {
    const { size, root } = this.#head;
    const [oldest] = (await this.#remote.audit.listAuditEvents({ orderBy: "seq", pageSize: 1 })).auditEvents;
    const first = Math.min(Number(oldest?.seq ?? size), size);
    if (first % TILE_WIDTH !== 0) throw new Mismatch(`event ${first - (first % TILE_WIDTH)} is missing`);
    while (this.#edge.size < first)
      for (const hash of await this.#hashes(0, this.#edge.size / TILE_WIDTH)) this.#append(hash);
    const events = this.#events(first);
    while (this.#edge.size < size) await this.#checkTile(events);
    await this.#checkAbove();
    if (Buffer.compare(this.#edge.root(), root) !== 0)
      throw new Mismatch("the root hash of the checkpoint is not that of the events");
    if (first > 0 && !this.#pruned.has(String(first)))
      throw new Mismatch(`the events before ${first} are missing, and the log has no event audit.pruned about them`);
    if (this.#erased > this.#recordedErasures)
      throw new Mismatch(
        `${this.#erased} events have no content, and the log has the erasure of ${this.#recordedErasures} (audit.erased)`,
      );
    return { first, erased: this.#erased };
  }

  async *#events(first: number): AsyncGenerator<AuditEvent> {
    const query = { filter: `seq >= ${first} AND seq < ${this.#head.size}`, orderBy: "seq" };
    for await (const page of eventPages(this.#remote.audit, query, { pageSize: 1000 })) yield* page;
  }

  /** Checks the events of a tile against its hashes and its entry bundle. */
  async #checkTile(events: AsyncGenerator<AuditEvent>): Promise<void> {
    const start = this.#edge.size;
    const hashes = await this.#hashes(0, start / TILE_WIDTH);
    const ofTile: AuditEvent[] = [];
    for (const place of hashes.keys()) {
      const { value: event } = await events.next();
      if (event === undefined || Number(event.seq) !== start + place)
        throw new Mismatch(`event ${start + place} is missing`);
      ofTile.push(event);
    }
    // The server has no bundle if an event is missing.
    const bundle = await this.#entries(start / TILE_WIDTH);
    for (const [place, event] of ofTile.entries()) {
      const seq = start + place;
      const hash = hashes[place] ?? new Uint8Array();
      const entry = this.#entryOf(seq, event, bundle[place]);
      if (Buffer.compare(leafHash(entry), hash) !== 0)
        throw new Mismatch(`event ${seq} is not the one that the tree has: it was changed, replaced or moved`);
      if (Buffer.compare(entry, bundle[place] ?? new Uint8Array()) !== 0)
        throw new Mismatch(`${tilePath("entries", start / TILE_WIDTH)} has another entry than event ${seq}`);
      this.#append(hash);
    }
  }

  /** The digest of an erased event is known from its entry only. */
  #entryOf(seq: number, event: AuditEvent, stored: Uint8Array | undefined): Uint8Array {
    const json = auditEventJson(event);
    const changes = Array.isArray(json.changes) ? json.changes.filter(isJsonObject) : [];
    const afterOf = (name: string) => changes.find(({ field }) => field === name)?.after;
    if (event.action === "audit.pruned") this.#pruned.add(String(afterOf("first_seq")));
    if (event.action === "audit.erased") this.#recordedErasures += Number(afterOf("count"));
    const digest = digestOf(json);
    if (digest !== null) return entryOf(seq, json, digest);
    if (Object.keys(contentOf(json)).length > 0) throw new Mismatch(`event ${seq} has no salt, but it was not erased`);
    this.#erased++;
    const parsed = parseJson(Buffer.from(stored ?? []).toString());
    return entryOf(seq, json, Buffer.from(String(isJsonObject(parsed) ? parsed.digest : ""), "hex"));
  }

  #append(hash: Uint8Array): void {
    this.#edge.append(hash);
    this.#compareKept();
  }

  #compareKept(): void {
    for (const { size, root, file } of this.#kept)
      if (size === this.#edge.size && Buffer.compare(root, this.#edge.root()) !== 0)
        throw new Mismatch(`the first ${size} events are not those of ${shownPath(file)}`);
  }

  async #checkAbove(): Promise<void> {
    for (const [name, expected] of this.#above) {
      const [level = 0, index = 0] = name.split("/").map(Number);
      const hashes = await this.#hashes(level, index);
      const place = expected.findIndex((hash, at) => Buffer.compare(hash, hashes[at] ?? new Uint8Array()) !== 0);
      if (place !== -1) throw new Mismatch(`hash ${place} of ${tilePath(level, index, hashes.length)} was changed`);
    }
  }

  async #hashes(level: number, index: number): Promise<Uint8Array[]> {
    const count = hashesAt(level, this.#head.size) - index * TILE_WIDTH;
    return splitHashes(await this.#remote.get(auditPath(level, index, count)));
  }

  async #entries(index: number): Promise<Uint8Array[]> {
    return entriesOf(await this.#remote.get(auditPath("entries", index, this.#head.size - index * TILE_WIDTH)));
  }
}

function auditPath(level: number | "entries", index: number, left: number): string {
  return `/v2alpha1/audit/${tilePath(level, index, Math.min(left, TILE_WIDTH))}`;
}
