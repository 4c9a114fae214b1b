/**
 * The controls on a key that this release applies, by which a node announces them. Servers of release 0.2 and earlier apply none: migration
 * 0017 keeps them and keys with a control apart. The names of the first two are those of their checks (`verify/checks.ts`).
 */
export const CONTROLS = ["DISABLED", "ADDRESS", "ACTORS"] as const;
