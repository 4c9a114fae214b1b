import { join, resolve } from "node:path";

/** Build results of this clone, which can be recreated at any time. */
export const cache = resolve(import.meta.dirname, "../../../node_modules/.cache/keyhold-interop");

/** Target folder of Cargo. The clients and the example share compiled dependencies. */
export const cargoTarget = join(cache, "rust");
