import type { Change } from "./cluster/link.ts";
import type { KeyReader } from "./foundation.ts";

/** What this server does when it hears of a change, made by whichever server. */
export interface Coherence {
  onChange(change: Change): void;
  /** Anything may have changed unheard. */
  onForget(): void;
  /** Another number whenever the signing keys may have changed. */
  readonly signingKeysVersion: number;
  /** Calls the listener when the signing keys have changed. */
  onSigningKeys(listener: () => void): void;
}

/** Keeps what verification and signing remember in step with what is heard. */
export function createCoherence(reader: Pick<KeyReader, "invalidate" | "clear">): Coherence {
  const listeners: (() => void)[] = [];
  let signingKeysVersion = 0;
  const forget = () => {
    signingKeysVersion++;
    reader.clear();
  };
  const signingKeysChanged = () => {
    signingKeysVersion++;
    for (const listener of listeners) listener();
  };
  return {
    onChange: (change) => {
      if (change.type === "key") reader.invalidate({ keyIds: [change.keyId], digests: [] });
      else if (change.type === "digests") reader.invalidate({ keyIds: [], digests: change.digests });
      else if (change.type === "signing_keys") signingKeysChanged();
      else forget();
    },
    onForget: forget,
    get signingKeysVersion() {
      return signingKeysVersion;
    },
    onSigningKeys: (listener) => listeners.push(listener),
  };
}
