import type { KeyKind, Register } from "../history.ts";
import { derive } from "./derive.ts";
import type { Workplace } from "./mutate.ts";
import { importKey, issue, remove, removeAndImport, revoke, rotate, selfRevoke, update } from "./verbs.ts";

type Verb = (work: Workplace, register: Register) => Promise<boolean>;

const rotateAtOnce: Verb = (work, register) => rotate(work, register, false);
const rotateWithGrace: Verb = (work, register) => rotate(work, register, true);

/** What an owner may do next to a key of this kind. */
const VERBS: Readonly<Record<KeyKind, readonly Verb[]>> = {
  issued: [update, update, rotateAtOnce, rotateWithGrace, revoke, selfRevoke],
  imported: [update, update, remove, removeAndImport, revoke, selfRevoke],
};

/** A client that owns keys: nobody else changes them, and it changes them one call at a time. */
export class Owner {
  keys: Register[] = [];
  readonly #work: Workplace;

  constructor(work: Workplace) {
    this.#work = work;
  }

  /** Makes a key of either kind. */
  async make(): Promise<void> {
    const { history, seeded } = this.#work;
    const kind = seeded.pick(["issued", "imported"] as const);
    const register = history.register(kind);
    const isThere = kind === "issued" ? await issue(this.#work, register) : await importKey(this.#work, register);
    if (isThere) this.keys.push(register);
  }

  /** A few changes of one key, one right after the other: what was read meanwhile is out of date at once. */
  async change(): Promise<void> {
    const { history, members, seeded } = this.#work;
    const register = seeded.pick(this.keys);
    for (let changes = 1 + seeded.below(4); changes > 0; changes--) {
      if (seeded.below(3) === 0) await derive(history, seeded.pick(members), register, seeded);
      if (await seeded.pick(VERBS[register.kind])(this.#work, register)) continue;
      this.keys = this.keys.filter((key) => key !== register);
      return;
    }
  }
}
