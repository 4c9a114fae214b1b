import type { Environment } from "./config.ts";

const PREFIX = "KEYHOLD_";

/** Variables that Kubernetes sets in a pod for each Service of its namespace (Kubernetes docs, "Accessing the Service"). */
const SERVICE_LINK = /_SERVICE_(?:HOST|PORT)(?:_|$)|_PORT_\d+_(?:TCP|UDP|SCTP)/;

/** Reads every variable of an environment before it validates combinations. */
type Reader = (environment: Environment) => unknown;

/**
 * Returns a message for each variable with our prefix that no reader reads, with the most similar known name. An empty one counts as not
 * set. Messages contain no values.
 */
export function unknownVariables(environment: Environment, readers: readonly Reader[]): string[] {
  const known = namesOf(readers);
  const isUnknown = (name: string) =>
    name.toUpperCase().startsWith(PREFIX) && !known.has(name) && !SERVICE_LINK.test(name) && environment[name]?.trim();
  return Object.keys(environment)
    .filter(isUnknown)
    .sort()
    .map((name) => {
      const nearest = nearestOf(name.toUpperCase(), known);
      return `${name} is not a known variable and is ignored${nearest === null ? "" : `; did you mean ${nearest}?`}`;
    });
}

/** Returns the names that are read from an empty environment. */
function namesOf(readers: readonly Reader[]): ReadonlySet<string> {
  const names = new Set<string>();
  const recorder: Environment = new Proxy(
    {},
    { get: (_target, name) => (typeof name === "string" ? void names.add(name) : undefined) },
  );
  for (const read of readers) read(recorder);
  return names;
}

/** Returns null if none is similar: more than a third of the name after the prefix would have to change. */
function nearestOf(name: string, known: ReadonlySet<string>): string | null {
  const ours = [...known].filter((one) => one.startsWith(PREFIX));
  const distances = ours.map((one) => ({ one, distance: editDistance(name, one) }));
  const nearest = distances.reduce((least, next) => (next.distance < least.distance ? next : least));
  return nearest.distance <= Math.max(2, (name.length - PREFIX.length) / 3) ? nearest.one : null;
}

/** Returns the Levenshtein distance of two texts: insertions, deletions and substitutions of UTF-16 units. O(a × b) time. */
export function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = (row[j - 1] ?? 0) + Number(a[i - 1] !== b[j - 1]);
      next.push(Math.min(substitution, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
