import type { IncomingHttpHeaders } from "node:http";
import { EncryptJWT, jwtDecrypt } from "jose";
import type { KeyRing } from "../domain/server-keys.ts";
import type { Clock } from "../lib/clock.ts";
import { findCredential } from "../lib/request-credential.ts";

export interface CookieOptions {
  /** Also the purpose: what is sealed for one cookie is not accepted in another. */
  readonly name: "keyhold-session" | "keyhold-login";
  readonly sameSite: "Strict" | "Lax";
  /** Milliseconds for which the content is accepted. */
  readonly lifetime: number;
}

/** RFC 7518 §4.5 and §5.3: the server key itself encrypts the content, with AES-256-GCM. */
const ALGORITHMS = { alg: "dir", enc: "A256GCM" } as const;

/** Bytes of a cookie with its name and attributes that every browser stores (RFC 6265bis §5.6). */
const MAX_LENGTH = 4096;

/**
 * A cookie that only servers with the same root secret can read and write. No server stores its content: each can open what another has
 * sealed. Only this host can set a cookie with the prefix `__Host-`, over TLS or on the loopback, for all of its paths (RFC 6265bis
 * §4.1.3.2): not another host of the same domain, and not a network in between. `T` must be JSON.
 */
export class SealedCookie<T extends object> {
  readonly #purpose: string;
  readonly #name: string;
  readonly #attributes: string;
  readonly #lifetime: number;
  readonly #keys: KeyRing;
  readonly #clock: Clock;

  /** `keys` is the key ring "console-session". */
  constructor({ name, sameSite, lifetime }: CookieOptions, keys: KeyRing, clock: Clock) {
    this.#purpose = name;
    this.#name = `__Host-${name}`;
    this.#attributes = `Path=/; Secure; HttpOnly; SameSite=${sameSite}`;
    this.#lifetime = lifetime;
    this.#keys = keys;
    this.#clock = clock;
  }

  /** Returns the field `Set-Cookie` with the content as a compact JWE (RFC 7516 §7.1); undefined if browsers would not store it. */
  async seal(content: T): Promise<string | undefined> {
    const { id, secret } = this.#keys.current;
    const sealed = await new EncryptJWT({ content })
      .setProtectedHeader({ ...ALGORITHMS, kid: id, typ: this.#purpose })
      .setExpirationTime(new Date(this.#clock.now() + this.#lifetime))
      .encrypt(secret);
    const cookie = `${this.#name}=${sealed}; ${this.#attributes}`;
    return cookie.length > MAX_LENGTH ? undefined : cookie;
  }

  /** The field `Set-Cookie` that removes the cookie. */
  get removal(): string {
    return `${this.#name}=; ${this.#attributes}; Max-Age=0`;
  }

  /** Returns the content; undefined if a request has no such cookie, or two, no server with these keys has sealed it, or it has expired. */
  async open({ cookie }: IncomingHttpHeaders): Promise<T | undefined> {
    const header = (name: string) => (name === "cookie" && cookie !== undefined ? [cookie] : []);
    const sealed = findCredential([{ kind: "cookie", name: this.#name }], { header, originalUri: undefined });
    return typeof sealed === "string" ? this.#unseal(sealed) : undefined;
  }

  async #unseal(sealed: string): Promise<T | undefined> {
    try {
      const options = {
        keyManagementAlgorithms: [ALGORITHMS.alg],
        contentEncryptionAlgorithms: [ALGORITHMS.enc],
        typ: this.#purpose,
        requiredClaims: ["exp"],
        currentDate: new Date(this.#clock.now()),
      };
      const keyOf = ({ kid = "" }: { kid?: string }) => {
        const key = this.#keys.find(kid);
        if (key === undefined) throw new Error("unknown key");
        return key.secret;
      };
      // Only `seal` writes this type.
      const { payload } = await jwtDecrypt<{ content: T }>(sealed, keyOf, options);
      return payload.content;
    } catch {
      return undefined;
    }
  }
}
