import { ClockCache } from "../../lib/clock-cache.ts";
import type { Credentials } from "../context.ts";
import type { CachedCredential } from "./cached-credential.ts";

/** Returns the same cache, which finds recently used credentials as the same objects: for callers, whose identities are memoized by them. */
export function recentCredentials(all: Credentials, max: number): Credentials {
  const recent = new ClockCache<CachedCredential>(max);
  return {
    get generation() {
      return all.generation;
    },
    nameOf: (credential) => all.nameOf(credential),
    find: (name) => {
      const known = recent.get(name);
      if (known !== undefined && all.isCurrent(known)) return known;
      const cached = all.find(name)?.retainable();
      if (cached === undefined) recent.delete(name);
      else recent.set(name, cached);
      return cached;
    },
    isCurrent: (cached) => all.isCurrent(cached),
    findStale: (name) => all.findStale(name),
    set: (name, loaded, generation) => {
      recent.delete(name);
      all.set(name, loaded, generation);
    },
    delete: (name) => {
      recent.delete(name);
      all.delete(name);
    },
  };
}
