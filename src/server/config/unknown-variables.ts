import { nearestName } from "../../lib/nearest-name.ts";
import type { Environment } from "./values.ts";

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
  const ours = [...known].filter((name) => name.startsWith(PREFIX)).map((name) => name.slice(PREFIX.length));
  const isUnknown = (name: string) =>
    name.toUpperCase().startsWith(PREFIX) && !known.has(name) && !SERVICE_LINK.test(name) && environment[name]?.trim();
  return Object.keys(environment)
    .filter(isUnknown)
    .sort()
    .map((name) => {
      const nearest = nearestName(name.slice(PREFIX.length), ours);
      return `${name} is not a known variable and is ignored${nearest === null ? "" : `; did you mean ${PREFIX}${nearest}?`}`;
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
