import { EncryptJWT, jwtDecrypt } from "jose";
import type { KeyRing } from "../domain/server-keys.ts";
import type { Clock } from "../lib/clock.ts";

export interface SealerOptions {
  /** What is sealed for one purpose is not accepted for another. */
  readonly purpose: string;
  /** Milliseconds for which the content is accepted. */
  readonly lifetime: number;
}

/** RFC 7518 §4.5 and §5.3: the server key itself encrypts the content, with AES-256-GCM. */
const ALGORITHMS = { alg: "dir", enc: "A256GCM" } as const;

/**
 * Encrypts content that only servers with the same root secret can read and write. No server stores it: each can open what another has
 * sealed. `T` must be JSON.
 */
export class Sealer<T extends object> {
  readonly #options: SealerOptions;
  readonly #keys: KeyRing;
  readonly #clock: Clock;

  /** `keys` is the key ring "console-session". */
  constructor(options: SealerOptions, keys: KeyRing, clock: Clock) {
    this.#options = options;
    this.#keys = keys;
    this.#clock = clock;
  }

  /** Returns when what is sealed now expires. */
  get expireTime(): Date {
    return new Date(this.#clock.now() + this.#options.lifetime);
  }

  /** Returns the content as a compact JWE (RFC 7516 §7.1). */
  async seal(content: T): Promise<string> {
    const { id, secret } = this.#keys.current;
    return new EncryptJWT({ content })
      .setProtectedHeader({ ...ALGORITHMS, kid: id, typ: this.#options.purpose })
      .setExpirationTime(this.expireTime)
      .encrypt(secret);
  }

  /** Returns the content; undefined if no server with these keys has sealed it for this purpose, or it has expired. */
  async open(sealed: string): Promise<T | undefined> {
    try {
      const options = {
        keyManagementAlgorithms: [ALGORITHMS.alg],
        contentEncryptionAlgorithms: [ALGORITHMS.enc],
        typ: this.#options.purpose,
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
