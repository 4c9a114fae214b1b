import { setTimeout as sleep } from "node:timers/promises";
import type { Entry, Fields, Ledger, State } from "./ledger.ts";
import { type Answer, type Json, paths, type RestClient } from "./rest.ts";
import type { Seeded } from "./seeded.ts";

/** Clients that make random changes to their own keys and record the acknowledged ones in the ledger. */
export interface Writers {
  /** Resolves when this many more changes have been acknowledged. */
  acknowledged(count: number): Promise<void>;
  /** Number of acknowledged changes of each kind. */
  readonly counts: Readonly<Record<string, number>>;
  /** Number of well-formed 503 responses, and of requests whose connection broke. */
  readonly unavailable: number;
  readonly broken: number;
  /** Responses of any other kind; there must be none. */
  readonly unexpected: readonly string[];
  /** Stops the clients after their requests in flight. */
  stop(): Promise<void>;
}

/** Starts clients. A client stops when its connection breaks; after a 503 it waits until the service is ready. */
export function startWriters(rest: RestClient, ledger: Ledger, seeded: Seeded, clients: number): Writers {
  const tally = new Tally();
  const running = Array.from({ length: clients }, () => write(new Client(rest, ledger, seeded.fork(), tally)));
  return {
    acknowledged: (count) => tally.reach(tally.total + count),
    counts: tally.counts,
    get unavailable() {
      return tally.unavailable;
    },
    get broken() {
      return tally.broken;
    },
    unexpected: tally.unexpected,
    stop: async () => {
      tally.stopped = true;
      await Promise.all(running);
    },
  };
}

class Tally {
  readonly counts: Record<string, number> = {};
  readonly unexpected: string[] = [];
  unavailable = 0;
  broken = 0;
  total = 0;
  stopped = false;
  #waiters: { readonly total: number; readonly resolve: () => void }[] = [];

  add(kind: string): void {
    this.counts[kind] = (this.counts[kind] ?? 0) + 1;
    this.total++;
    for (const { total, resolve } of this.#waiters) if (total <= this.total) resolve();
    this.#waiters = this.#waiters.filter(({ total }) => total > this.total);
  }

  reach(total: number): Promise<void> {
    return new Promise((resolve) => this.#waiters.push({ total, resolve }));
  }
}

type Change = "create" | "import" | "batch" | "update" | "rotate" | "grace" | "revoke" | "delete";

export const CHANGES: readonly Change[] = [
  "create",
  "import",
  "batch",
  "update",
  "update",
  "rotate",
  "grace",
  "revoke",
  "delete",
];

async function write(client: Client): Promise<void> {
  while (!client.ended) await client.change();
}

let clients = 0;

class Client {
  readonly #rest: RestClient;
  readonly #ledger: Ledger;
  readonly #seeded: Seeded;
  readonly #tally: Tally;
  readonly #name = `client ${++clients}`;
  #keys: Entry[] = [];
  #made = 0;
  #broken = false;

  constructor(rest: RestClient, ledger: Ledger, seeded: Seeded, tally: Tally) {
    this.#rest = rest;
    this.#ledger = ledger;
    this.#seeded = seeded;
    this.#tally = tally;
  }

  get ended(): boolean {
    return this.#broken || this.#tally.stopped;
  }

  async change(): Promise<void> {
    const change = this.#seeded.pick(CHANGES);
    if (change === "create") return this.#create();
    if (change === "import") return this.#import();
    if (change === "batch") return this.#importBatch();
    const kind = change === "delete" ? "imported" : change === "rotate" || change === "grace" ? "issued" : null;
    const keys = this.#keys.filter((key) => kind === null || key.kind === kind);
    if (keys.length === 0) return this.#create();
    const key = this.#seeded.pick(keys);
    const [before] = key.possible;
    if (before?.fields) await this.#alter(change, key, before, before.fields);
  }

  async #create(): Promise<void> {
    const fields = this.#newFields();
    const body = await this.#ask("create", "POST", paths.issued, { ...fields, actor_id: this.#name });
    if (body === null) this.#ledger.unanswered.push({ fields, rawKey: null });
    else this.#keep("issued", body.issued_api_key.key_id, fields, body.secret);
  }

  async #import(): Promise<void> {
    const fields = this.#newFields();
    const rawKey = `raw ${fields.name}`;
    const request = { ...fields, actor_id: this.#name, raw_key: rawKey };
    const body = await this.#ask("import", "POST", paths.imported, request);
    if (body === null) this.#ledger.unanswered.push({ fields, rawKey });
    else this.#keep("imported", body.key_id, fields, rawKey);
  }

  async #importBatch(): Promise<void> {
    const all = Array.from({ length: 2 + this.#seeded.below(8) }, () => this.#newFields());
    const requests = all.map((fields) => ({ ...fields, actor_id: this.#name, raw_key: `raw ${fields.name}` }));
    const body = await this.#ask("batch", "POST", `${paths.imported}:batchCreate`, { requests });
    for (const [index, fields] of all.entries()) {
      const rawKey = `raw ${fields.name}`;
      if (body === null) this.#ledger.unanswered.push({ fields, rawKey });
      else this.#keep("imported", body.results[index].imported_api_key.key_id, fields, rawKey);
    }
  }

  async #alter(change: Change, key: Entry, before: State, fields: Fields): Promise<void> {
    const { good, bad } = before;
    const all = [...good, ...bad];
    const path = `${key.kind === "issued" ? paths.issued : paths.imported}/${key.keyId}`;
    if (change === "update") {
      const next = this.#newFields();
      const body = await this.#ask(change, "PATCH", path, next);
      this.#record(key, body, { ...before, fields: next });
    } else if (change === "revoke") {
      const reason = "REVOCATION_REASON_SUPERSEDED";
      const body = await this.#ask(change, "POST", `${paths.keys}/${key.keyId}:revoke`, { reason });
      this.#record(key, body, { ...before, revoked: true, good: [], bad: all });
    } else if (change === "delete") {
      const body = await this.#ask(change, "DELETE", path);
      this.#record(key, body, { fields: null, revoked: false, good: [], bad: all });
    } else {
      if (change === "grace" && good.length > 8) return;
      const body = await this.#ask(change, "POST", `${path}:rotate`, change === "grace" ? { grace_period: "30d" } : {});
      const secret = body === null ? [] : [body.secret];
      const kept = change === "grace" ? good : [];
      this.#record(key, body, {
        fields,
        revoked: false,
        good: [...secret, ...kept],
        bad: change === "grace" ? bad : all,
      });
    }
  }

  /** Records a change. With a response the key is in the new state; without one it may be in either, and is not changed again. */
  #record(key: Entry, body: Json, after: State): void {
    const isOver = body === null || after.fields === null || after.revoked;
    key.possible = body === null ? [...key.possible, after] : [after];
    if (isOver) this.#keys = this.#keys.filter((one) => one !== key);
  }

  #keep(kind: Entry["kind"], keyId: string, fields: Fields, credential: string): void {
    const entry = { kind, keyId, possible: [{ fields, revoked: false, good: [credential], bad: [] }] };
    this.#ledger.entries.push(entry);
    this.#keys.push(entry);
  }

  #newFields(): Fields {
    const name = `${this.#name} key ${++this.#made}`;
    return {
      name,
      scopes: [`read:${this.#made}`, `write:${this.#made}`],
      metadata: { name, made: String(this.#made) },
    };
  }

  /** Returns the body of an acknowledgement, or null. */
  async #ask(change: Change, method: string, path: string, body?: unknown): Promise<Json> {
    const answer = await this.#rest(method, path, body).catch(() => null);
    if (answer === null) {
      this.#broken = true;
      this.#tally.broken++;
      return null;
    }
    if (answer.status === 200) {
      this.#tally.add(change);
      return answer.body;
    }
    if (isUnavailable(answer)) this.#tally.unavailable++;
    else this.#tally.unexpected.push(`${change}: ${answer.status} ${answer.text}`);
    await this.#untilReady();
    return null;
  }

  async #untilReady(): Promise<void> {
    for (;;) {
      const answer = await this.#rest("GET", "/health/ready").catch(() => null);
      if (answer === null || answer.status === 200 || this.#tally.stopped) return;
      await sleep(20);
    }
  }
}

/** Returns whether the response is a well-formed 503 with Retry-After. */
function isUnavailable({ status, headers, body }: Answer): boolean {
  return status === 503 && body?.error?.status === "UNAVAILABLE" && Number(headers.get("retry-after")) >= 1;
}
