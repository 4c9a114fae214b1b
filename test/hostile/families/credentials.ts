import { basicAsIs, INTROSPECT } from "../../support/introspect.ts";
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
  /** Whether it is the credential of the caller; `password`: by HTTP Basic. */
  readonly isCaller?: boolean | "password";
  /** Whether the body is sent as a form. */
  readonly isForm?: boolean;
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
  introspected: {
    path: INTROSPECT,
    body: (token) => ({ token }),
    isAccepted: (_, body) => body?.active === true,
    isForm: true,
  },
  "of a caller that introspects, as the password": {
    path: INTROSPECT,
    body: () => ({ token: "a" }),
    isAccepted: (status) => status === 200,
    isCaller: "password",
    isForm: true,
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
    const { path, body, isAccepted, isCaller = false, isForm = false } = this.#use;
    // An alteration may have no effect, and a server without authentication ignores the caller's credential.
    if (this.#valid.has(text) || (isCaller !== false && target.token === undefined)) return [];
    const caller = callerOf(isCaller, text) ?? Object.fromEntries(target.credentials);
    const type = isForm ? "application/x-www-form-urlencoded" : "application/json";
    const content = isForm ? new URLSearchParams(body(text)).toString() : JSON.stringify(body(text));
    const answer = await send(target.url + path, "POST", content, { "content-type": type, ...caller });
    const seen = `${answer.status} ${answer.text.slice(0, 500)}`;
    if (!isAllowed(answer.status)) return [`answered a fault: ${seen}`];
    return [...bodyFaults(answer.text), ...(isAccepted(answer.status, answer.body) ? [`accepted: ${seen}`] : [])];
  }
}

function callerOf(isCaller: boolean | "password", text: string): Record<string, string> | undefined {
  if (isCaller === "password") return basicAsIs("a", text);
  return isCaller ? { authorization: `Bearer ${text}` } : undefined;
}
