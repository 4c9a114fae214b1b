import { KeyholdError } from "../domain/errors.ts";
import type { HashedSource, ImportSource } from "./import-source.ts";
import type { HashRegistry } from "./ports.ts";

/**
 * Stores the schemes and prefix lengths of keys to import, each once, and tests whether their hashes can be computed. Rejects if the
 * database cannot be read. Returns a function that returns the id of the scheme of a source, or throws the error if it cannot be stored.
 */
export async function registerSchemes(registry: HashRegistry, sources: readonly ImportSource[]) {
  const results = new Map<string, number | KeyholdError>();
  for (const source of sources) {
    if ("rawKey" in source || results.has(nameOf(source))) continue;
    results.set(nameOf(source), await register(registry, source).catch(asResult));
  }
  return (source: HashedSource) => {
    const result = results.get(nameOf(source)) ?? new KeyholdError("INTERNAL", "a hash format was not stored");
    if (result instanceof KeyholdError) throw result;
    return result;
  };
}

async function register(registry: HashRegistry, { hash, lookupPrefix }: HashedSource): Promise<number> {
  await registry.requireSupported(hash);
  if (lookupPrefix !== null) await registry.requirePrefixLength(Buffer.byteLength(lookupPrefix));
  return registry.schemeId(hash.scheme);
}

function asResult(error: unknown): KeyholdError {
  if (error instanceof KeyholdError && error.code !== "DATABASE_UNAVAILABLE") return error;
  throw error;
}

/** Identifies what is registered: the scheme, the kind of a slow hash, such as `$argon2id`, and the length of the prefix. */
function nameOf({ hash: { scheme, parameters }, lookupPrefix }: HashedSource): string {
  const { algorithm, hmacKeyId, prefix, suffix } = scheme;
  const kind = /^\$[^$]*/.exec(parameters ?? "")?.[0];
  const length = lookupPrefix === null ? 0 : Buffer.byteLength(lookupPrefix);
  return JSON.stringify([algorithm, hmacKeyId, prefix, suffix, kind, length]);
}
