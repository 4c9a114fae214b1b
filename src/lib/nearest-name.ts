/** Longer names are compared with none: the time is quadratic. */
const MAX_LENGTH = 64;

/**
 * Returns the known name that is most similar to an unknown one, whatever their case; null if more than a third of it would have to change,
 * other than the order of its letters. Similar are also a name that lacks its last words, such as `actor`, and those of times by other
 * conventions, such as `expiresAt` and `created_at`.
 *
 * @example nearestName("expires_at", ["expire_time", "name"]) // "expire_time"
 */
export function nearestName(name: string, known: Iterable<string>): string | null {
  if (name.length > MAX_LENGTH) return null;
  const wanted = comparable(name);
  let [nearest, least]: [string | null, number] = [null, Math.max(1, wanted.length / 3)];
  for (const one of known) {
    const other = comparable(one);
    const isClose = lettersOf(wanted) === lettersOf(other) || other.startsWith(`${wanted}_`);
    const distance = isClose ? 1 : editDistance(wanted, other);
    if (distance < least || (distance === least && nearest === null)) [nearest, least] = [one, distance];
  }
  return nearest;
}

/** Returns `; did you mean …?` to end a message with, or nothing. */
export function suggestion(name: string, known: Iterable<string>): string {
  const nearest = nearestName(name, known);
  return nearest === null ? "" : `; did you mean ${nearest}?`;
}

function comparable(name: string): string {
  const words = name.replace(/([a-z])([A-Z])/g, "$1_$2").toLowerCase();
  return words.replace(/[ds]?_at$/, "_time");
}

function lettersOf(name: string): string {
  return [...name].sort().join("");
}

/** Returns the Levenshtein distance of two texts: insertions, deletions and substitutions of UTF-16 units. O(a × b) time. */
function editDistance(a: string, b: string): number {
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
