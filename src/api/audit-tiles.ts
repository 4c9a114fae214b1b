import { bundleOf } from "../audit/tree/entry.ts";
import { parseTreePath } from "../audit/tree/paths.ts";
import { currentHead, readEntries, readTile } from "../audit/tree/tree.ts";
import { type Principal, requireUnrestricted } from "../domain/principal.ts";
import type { ApiContext } from "./row.ts";
import { READ_AUDIT_LOG } from "./v2alpha1/audit.ts";

/** A resource of the audit log's tree; immutable, unless it is the checkpoint. */
export interface TreeResource {
  readonly content: string | Uint8Array;
  readonly isImmutable: boolean;
}

export type ReadTree = ReturnType<typeof auditTiles>;

/** Returns the handler of the paths of C2SP tlog-tiles. It returns null if the tree does not have the resource, or it was pruned. */
export function auditTiles({ auditTree }: Pick<ApiContext, "auditTree">) {
  const read = async (path: string): Promise<string | Uint8Array | null> => {
    const named = parseTreePath(path);
    if (named === null) return null;
    if (named.kind === "checkpoint") return (await currentHead(auditTree)).checkpoint;
    if (named.kind === "tile") return readTile(auditTree, named, named.width);
    const entries = await readEntries(auditTree, named.index, named.width);
    return entries && bundleOf(entries);
  };
  return (path: string) =>
    async (principal: Principal): Promise<TreeResource | null> => {
      requireUnrestricted(principal, READ_AUDIT_LOG);
      const content = await read(path);
      return content === null ? null : { content, isImmutable: typeof content !== "string" };
    };
}
