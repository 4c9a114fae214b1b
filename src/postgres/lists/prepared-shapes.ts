import type { ListQuery } from "../../keys/ports.ts";

/** Maximum number of shapes. Each connection keeps a statement for each, of a few hundred kilobytes with its plan. */
const MAX_SHAPES = 32;

/** Values that are parameters of a statement. The others of these names are in its text. */
const PARAMETERS: ReadonlySet<string> = new Set(["value", "key"]);

/**
 * Returns a function that tells whether the statement of a list is prepared: the first shapes are, which are those of a client that asks the
 * same again and again. Lists of the same shape differ in values only, so they have the same statement.
 */
export function createPreparedShapes(): (list: ListQuery) => boolean {
  const shapes = new Set<string>();
  return (list) => {
    const shape = shapeOf(list);
    if (shapes.size < MAX_SHAPES) shapes.add(shape);
    return shapes.has(shape);
  };
}

function shapeOf({ kind, before, filter }: ListQuery): string {
  const withoutValues = (_: string, part: unknown) =>
    isNode(part) && part.node !== "status"
      ? Object.fromEntries(Object.entries(part).filter(([name]) => !PARAMETERS.has(name)))
      : part;
  return JSON.stringify([kind === null, before === null, filter], withoutValues);
}

function isNode(part: unknown): part is { readonly node: string } {
  return typeof part === "object" && part !== null && "node" in part;
}
