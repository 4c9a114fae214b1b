import { type Json, paths } from "../../support/rest.ts";
import type { Seeded } from "../../support/seeded.ts";
import { send } from "../../support/wire.ts";
import type { Family, HostileCase } from "../case.ts";
import { bodyFaults, isAllowed } from "../faults.ts";
import type { Target } from "../target.ts";
import type { World } from "../world.ts";
import { chooseForgery, type Forgery } from "./forgeries.ts";

/** Changed tokens and secrets, to be verified, derived from and revoked, and as the credential of a caller. */
export const credentials: Family = {
  name: "credentials",
  parallel: 32,
  weight: 2,
  generate: (random, world) => new CredentialCase(random, world),
};

/** What a server is asked to do with a credential, and whether its answer says that it is accepted. */
interface Use {
  readonly path: string;
  readonly body: (text: string) => Json;
  readonly isAccepted: (status: number, body: Json) => boolean;
  /** Whether the credential is that of the caller. */
  readonly isCaller?: boolean;
}

const USES: Readonly<Record<string, Use>> = {
  verified: {
    path: `${paths.keys}:verify`,
    body: (credential) => ({ credential }),
    isAccepted: (_, body) => body?.is_valid === true,
  },
  "verified in a batch": {
    path: `${paths.keys}:batchVerify`,
    body: (credential) => ({ requests: [{ credential }, { credential: "a" }] }),
    isAccepted: (_, body) => body?.results?.[0]?.is_valid === true,
  },
  "derived from": {
    path: `${paths.keys}:derive`,
    body: (credential) => ({ credential, algorithm: "TOKEN_ALGORITHM_JWT" }),
    isAccepted: (status) => status === 200,
  },
  "revoked by itself": {
    path: paths.selfRevoke,
    body: (credential) => ({ credential }),
    isAccepted: (status) => status === 200,
  },
  "of a caller": {
    path: `${paths.keys}:verify`,
    body: () => ({ credential: "a" }),
    isAccepted: (status) => status === 200,
    isCaller: true,
  },
};

class CredentialCase implements HostileCase {
  readonly kind: string;
  readonly #useName: string;
  readonly #forgery: Forgery;
  readonly #use: Use;
  readonly #valid: ReadonlySet<string>;

  constructor(random: Seeded, world: World) {
    this.#valid = new Set(Object.values(world.credentials));
    this.#forgery = chooseForgery(random, world.credentials);
    const [name, use] = random.pick(Object.entries(USES));
    this.#use = use;
    this.#useName = name;
    this.kind = this.#forgery.kind;
  }

  shown(): string {
    return `${this.kind}, ${this.#useName}\n${JSON.stringify(this.#forgery.text)}`;
  }

  async play(target: Target): Promise<readonly string[]> {
    const { text } = this.#forgery;
    const { path, body, isAccepted, isCaller = false } = this.#use;
    // A change may change nothing; and of a server that asks for none, no caller's credential is looked at.
    if (this.#valid.has(text) || (isCaller && target.token === undefined)) return [];
    const caller = isCaller ? { authorization: `Bearer ${text}` } : Object.fromEntries(target.credentials);
    const headers = { "content-type": "application/json", ...caller };
    const answer = await send(target.url + path, "POST", JSON.stringify(body(text)), headers);
    const seen = `${answer.status} ${answer.text.slice(0, 500)}`;
    if (!isAllowed(answer.status)) return [`answered a fault: ${seen}`];
    return [...bodyFaults(answer.text), ...(isAccepted(answer.status, answer.body) ? [`accepted: ${seen}`] : [])];
  }
}
