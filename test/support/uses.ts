import type { Use } from "../../src/verify/last-used.ts";

/** Returns a use of a key by its current secret, from an unknown address, unless `use` says otherwise. */
export function useOf(keyId: string, use: Partial<Use> = {}): Use {
  return { keyId, oldSecret: null, address: null, ...use };
}
