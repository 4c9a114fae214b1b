import type { KeyKind, Register } from "../history.ts";
import { derive } from "./derive.ts";
import type { MutationContext } from "./mutate.ts";
import { flip, importKey, issue, remove, removeAndImport, revoke, rotate, selfRevoke, update } from "./verbs.ts";

type Verb = (context: MutationContext, register: Register) => Promise<boolean>;

const rotateAtOnce: Verb = (context, register) => rotate(context, register, false);
const rotateWithGrace: Verb = (context, register) => rotate(context, register, true);

/** The operations of an owner on a key of this kind. */
const VERBS: Readonly<Record<KeyKind, readonly Verb[]>> = {
  issued: [update, update, flip, flip, rotateAtOnce, rotateWithGrace, revoke, selfRevoke],
  imported: [update, update, flip, flip, remove, removeAndImport, revoke, selfRevoke],
};

/** A client that owns keys: no other client changes them, and it changes each key sequentially. */
export class Owner {
  keys: Register[] = [];
  readonly #context: MutationContext;

  constructor(context: MutationContext) {
    this.#context = context;
  }

  /** Creates a key of either kind. */
  async make(): Promise<void> {
    const { history, seeded } = this.#context;
    const kind = seeded.pick(["issued", "imported"] as const);
    const register = history.register(kind);
    const isThere = kind === "issued" ? await issue(this.#context, register) : await importKey(this.#context, register);
    if (isThere) this.keys.push(register);
  }

  /** Makes a few changes of one key in quick succession, so that a concurrent read is stale at once. */
  async change(): Promise<void> {
    const { history, members, seeded, mayDisable } = this.#context;
    const register = seeded.pick(this.keys);
    for (let changes = 1 + seeded.below(4); changes > 0; changes--) {
      if (seeded.below(3) === 0) await derive(history, seeded.pick(members), register, seeded);
      const verbs = VERBS[register.kind].filter((verb) => mayDisable || verb !== flip);
      if (await seeded.pick(verbs)(this.#context, register)) continue;
      this.keys = this.keys.filter((key) => key !== register);
      return;
    }
  }
}
