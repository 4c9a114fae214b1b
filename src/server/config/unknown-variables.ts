import { editDistance } from "../../lib/edit-distance.ts";
import type { Environment } from "./config.ts";

const PREFIX = "KEYHOLD_";

/** What Kubernetes sets in a pod for each Service of its namespace (Kubernetes docs, "Accessing the Service"). */
const SERVICE_LINK = /_SERVICE_(?:HOST|PORT)(?:_|$)|_PORT_\d+_(?:TCP|UDP|SCTP)/;

/** Reads an environment, each of its variables before it looks at what others say. */
type Reader = (environment: Environment) => unknown;

/**
 * Returns a message for each variable with our prefix that none of the readers reads, with the name that is probably meant. One that is empty
 * counts as not set. Values are not in the messages.
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

/** The names that are read of an empty environment. */
function namesOf(readers: readonly Reader[]): ReadonlySet<string> {
  const names = new Set<string>();
  const recorder: Environment = new Proxy(
    {},
    { get: (_target, name) => (typeof name === "string" ? void names.add(name) : undefined) },
  );
  for (const read of readers) read(recorder);
  return names;
}

/** Null if none is near: more than a third of the name behind the prefix would have to be changed. */
function nearestOf(name: string, known: ReadonlySet<string>): string | null {
  const ours = [...known].filter((one) => one.startsWith(PREFIX));
  const distances = ours.map((one) => ({ one, distance: editDistance(name, one) }));
  const nearest = distances.reduce((least, next) => (next.distance < least.distance ? next : least));
  return nearest.distance <= Math.max(2, (name.length - PREFIX.length) / 3) ? nearest.one : null;
}
