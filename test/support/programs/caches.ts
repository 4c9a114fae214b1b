import { homedir } from "node:os";
import { join, resolve } from "node:path";

/** Build results of this clone, which can be recreated at any time. */
export const cache = resolve(import.meta.dirname, "../../../node_modules/.cache/keyhold-interop");

/** Target folder of Cargo, shared by the clients, the example and all clones, like the caches of Go and Maven. */
export const cargoTarget = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "keyhold-interop", "rust");
