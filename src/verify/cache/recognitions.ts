import { hash } from "node:crypto";
import type { ByteCacheOptions } from "../../lib/byte-cache.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Recognitions, Recognized } from "../recognized.ts";
import { type Codec, Layer } from "./layer.ts";
import { decodeRecognized, encodeRecognized } from "./recognition-codec.ts";

const CODEC: Codec<Recognized> = {
  writeKey: (name, into) => into.write(name, 0, "latin1"),
  encode: encodeRecognized,
  decode: (_name, bytes) => decodeRecognized(bytes),
};

/**
 * What proven credentials are, by the SHA-256 of their text: the text itself is not kept. What was proven holds as long as the
 * key rings of this process do, but for the end of a token, which is therefore looked at each time.
 */
export class CachedRecognitions implements Recognitions {
  readonly #layer: Layer<Recognized>;
  readonly #clock: Clock;
  #generation = 0;

  constructor(clock: Clock, options: ByteCacheOptions) {
    this.#layer = new Layer(CODEC, options);
    this.#clock = clock;
  }

  get generation(): number {
    return this.#generation;
  }

  get cold() {
    return this.#layer.cold;
  }

  /** A string, since that is what is quickest to hash into and to find by. */
  nameOf(credential: string): string {
    return hash("sha256", credential, "latin1");
  }

  recall(name: string): Recognized | undefined {
    const recognized = this.#layer.get(name);
    if (recognized === undefined || recognized.token === null) return recognized;
    if (recognized.token.expireTime.getTime() > this.#clock.now()) return recognized;
    this.#layer.delete(name);
    return undefined;
  }

  remember(name: string, recognized: Recognized, generation: number): void {
    if (generation === this.#generation) this.#layer.set(name, recognized);
  }

  clear(): void {
    this.#layer.clear();
    this.#generation++;
  }
}
