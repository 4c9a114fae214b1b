import { type Json, paths } from "../../support/rest.ts";
import type { Seeded } from "../../support/seeded.ts";
import { send } from "../../support/wire.ts";
import type { Family, HostileCase } from "../case.ts";
import type { CaseContext } from "../case-context.ts";
import { bodyFaults, isAllowed } from "../faults.ts";
import type { Target } from "../target.ts";
import { chooseForgery, type Forgery } from "./forgeries.ts";

/** Altered tokens and secrets, used to verify, derive and revoke, and as the credential of a caller. */
export const credentials: Family = {
  name: "credentials",
  parallel: 32,
  weight: 2,
  generate: (random, context) => new CredentialCase(random, context),
};

/** A use of a credential, and whether the response shows that it was accepted. */
interface Use {
  readonly path: string;
  readonly body: (text: string) => Json;
  readonly isAccepted: (status: number, body: Json) => boolean;
  /** Whether it is the credential of the caller. */
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

  constructor(random: Seeded, context: CaseContext) {
    this.#valid = new Set(Object.values(context.credentials));
    this.#forgery = chooseForgery(random, context.credentials);
    const [name, use] = random.pick(Object.entries(USES));
    this.#use = use;
    this.#useName = name;
    this.kind = this.#forgery.kind;
  }

  description(): string {
    return `${this.kind}, ${this.#useName}\n${JSON.stringify(this.#forgery.text)}`;
  }

  async run(target: Target): Promise<readonly string[]> {
    const { text } = this.#forgery;
    const { path, body, isAccepted, isCaller = false } = this.#use;
    // An alteration may have no effect, and a server without authentication ignores the caller's credential.
    if (this.#valid.has(text) || (isCaller && target.token === undefined)) return [];
    const caller = isCaller ? { authorization: `Bearer ${text}` } : Object.fromEntries(target.credentials);
    const headers = { "content-type": "application/json", ...caller };
    const answer = await send(target.url + path, "POST", JSON.stringify(body(text)), headers);
    const seen = `${answer.status} ${answer.text.slice(0, 500)}`;
    if (!isAllowed(answer.status)) return [`answered a fault: ${seen}`];
    return [...bodyFaults(answer.text), ...(isAccepted(answer.status, answer.body) ? [`accepted: ${seen}`] : [])];
  }
}
