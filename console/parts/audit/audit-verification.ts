import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { callUnaryMethod, useTransport } from "@connectrpc/connect-query";
import { useMutation, useQuery } from "@tanstack/react-query";
import { type AuditCheckpoint, type AuditEvent, AuditService } from "../../../gen/keyhold/v2alpha1/audit_pb.js";
import {
  checkConsistency,
  checkContent,
  checkInclusion,
  checkSignature,
  type Head,
  headOf,
  type Outcome,
} from "./audit-proof.ts";

const { getAuditCheckpoint, getAuditProof } = AuditService.method;

/** What is known of the current checkpoint of the log. */
interface CurrentHead extends Pick<AuditCheckpoint, "checkpoint" | "verifierKey"> {
  readonly head: Head;
  readonly signature: Outcome;
}

async function readHead(transport: Transport): Promise<CurrentHead> {
  const { checkpoint, verifierKey } = await callUnaryMethod(transport, getAuditCheckpoint, {});
  const head = headOf(checkpoint);
  if (head === null) throw new ConnectError("the server has not sent a checkpoint", Code.DataLoss);
  return { checkpoint, verifierKey, head, signature: await checkSignature({ checkpoint, verifierKey }) };
}

/** Verifies that the log has an event. */
export function useEventVerification(event: AuditEvent) {
  const transport = useTransport();
  return useQuery({
    queryKey: ["audit-event-verification", String(event.seq)],
    queryFn: async () => {
      const { head, signature } = await readHead(transport);
      const proof = await callUnaryMethod(transport, getAuditProof, { seq: event.seq, treeSize: BigInt(head.size) });
      const inclusion = await checkInclusion(Number(event.seq), proof, head);
      return { head, signature, inclusion: inclusion === "failed" ? inclusion : await checkContent(event, proof) };
    },
  });
}

/** How the log relates to an earlier checkpoint. */
export type Continuation = "continues" | "otherLog" | "shorter" | "rewritten";

export interface Comparison {
  readonly continuation: Continuation;
  /** The size of the earlier tree. */
  readonly size: number;
}

async function compare(transport: Transport, earlier: Head, head: Head): Promise<Comparison> {
  const { size } = earlier;
  if (earlier.origin !== head.origin) return { size, continuation: "otherLog" };
  if (size > head.size) return { size, continuation: "shorter" };
  const range = { firstSize: BigInt(size), treeSize: BigInt(head.size) };
  const proof = await callUnaryMethod(transport, getAuditProof, range);
  const outcome = await checkConsistency(earlier, head, proof);
  return { size, continuation: outcome === "verified" ? "continues" : "rewritten" };
}

export interface LogVerification extends CurrentHead {
  /** Null: the browser remembers no checkpoint. */
  readonly remembered: (Comparison & { readonly isSameKey: boolean }) | null;
  /** Null: none was given. */
  readonly kept: Comparison | null;
}

/**
 * Verifies the current checkpoint, and that it continues the one that this browser saw last and one that a person keeps elsewhere. Remembers it
 * unless something does not match.
 */
export function useLogVerification() {
  const transport = useTransport();
  return useMutation({
    mutationFn: async (kept: Head | null): Promise<LogVerification> => {
      const current = await readHead(transport);
      const memory = recall();
      const verification: LogVerification = {
        ...current,
        remembered: memory && {
          ...(await compare(transport, memory.head, current.head)),
          isSameKey: memory.verifierKey === current.verifierKey,
        },
        kept: kept && (await compare(transport, kept, current.head)),
      };
      if (matches(verification)) remember(verification);
      return verification;
    },
  });
}

/** Returns whether nothing contradicts the log. */
export function matches({ signature, remembered, kept }: LogVerification): boolean {
  const comparisons = [remembered, kept].filter((comparison) => comparison !== null);
  return (
    signature !== "failed" &&
    remembered?.isSameKey !== false &&
    comparisons.every(({ continuation }) => continuation === "continues")
  );
}

/** The last checkpoint of the server of this page, in this browser. */
const MEMORY = "keyhold-audit-checkpoint";

/** Lets this browser compare later checkpoints with this one. */
export function remember({ checkpoint, verifierKey }: Pick<AuditCheckpoint, "checkpoint" | "verifierKey">): void {
  localStorage.setItem(MEMORY, `${verifierKey}\n${checkpoint}`);
}

function recall(): { readonly verifierKey: string; readonly head: Head } | null {
  const [verifierKey = "", ...checkpoint] = (localStorage.getItem(MEMORY) ?? "").split("\n");
  const head = headOf(checkpoint.join("\n"));
  return head && { verifierKey, head };
}
