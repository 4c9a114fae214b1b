import type { IncomingHttpHeaders } from "node:http";
import type { KeyRing } from "../domain/server-keys.ts";
import type { Clock } from "../lib/clock.ts";
import { findCredential } from "../lib/request-credential.ts";
import { Sealer } from "../token/sealer.ts";

export interface CookieOptions {
  readonly name: string;
  /** `None`: browsers also send it in a frame of another site, where each site has a cookie of its own (CHIPS). */
  readonly sameSite: "Strict" | "Lax" | "None";
}

/** Bytes of a cookie with its name and attributes that every browser stores (RFC 6265bis §5.6). */
const MAX_LENGTH = 4096;

/**
 * A cookie with sealed content. Only this host can set a cookie with the prefix `__Host-`, over TLS or on the loopback, for all of its
 * paths (RFC 6265bis §4.1.3.2): not another host of the same domain, and not a network in between.
 */
export class SealedCookie<T extends object> {
  readonly #name: string;
  readonly #attributes: string;
  readonly #sealer: Sealer<T>;

  constructor({ name, sameSite }: CookieOptions, sealer: Sealer<T>) {
    this.#name = `__Host-${name}`;
    this.#attributes = `Path=/; Secure; HttpOnly; SameSite=${sameSite}${sameSite === "None" ? "; Partitioned" : ""}`;
    this.#sealer = sealer;
  }

  /** Returns the field `Set-Cookie`; undefined if browsers would not store it. */
  async seal(content: T): Promise<string | undefined> {
    return this.set(await this.#sealer.seal(content));
  }

  /** Returns the field `Set-Cookie` for content that is sealed already; undefined if browsers would not store it. */
  set(sealed: string): string | undefined {
    const cookie = `${this.#name}=${sealed}; ${this.#attributes}`;
    return cookie.length > MAX_LENGTH ? undefined : cookie;
  }

  /** The field `Set-Cookie` that removes the cookie. */
  get removal(): string {
    return `${this.#name}=; ${this.#attributes}; Max-Age=0`;
  }

  /** Returns the sealed content; undefined if a request has no such cookie, or two. */
  find({ cookie }: IncomingHttpHeaders): string | undefined {
    const header = (name: string) => (name === "cookie" && cookie !== undefined ? [cookie] : []);
    const sealed = findCredential([{ kind: "cookie", name: this.#name }], { header, originalUri: undefined });
    return typeof sealed === "string" ? sealed : undefined;
  }

  /** Returns the content; undefined if there is none, or the sealer does not open it. */
  async open(headers: IncomingHttpHeaders): Promise<T | undefined> {
    const sealed = this.find(headers);
    return sealed === undefined ? undefined : this.#sealer.open(sealed);
  }
}

export interface SealedCookieOptions extends CookieOptions {
  /** Milliseconds for which the content is accepted. */
  readonly lifetime: number;
}

/** Returns a cookie whose name is also the purpose of its content. `keys` is the key ring "console-session". */
export function sealedCookie<T extends object>(
  { name, sameSite, lifetime }: SealedCookieOptions,
  keys: KeyRing,
  clock: Clock,
): SealedCookie<T> {
  return new SealedCookie({ name, sameSite }, new Sealer<T>({ purpose: name, lifetime }, keys, clock));
}
