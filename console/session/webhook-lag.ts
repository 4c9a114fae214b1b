import { useQuery } from "@connectrpc/connect-query";
import { AuditService } from "../../gen/keyhold/v2alpha1/audit_pb.js";
import type { WebhookEndpoint } from "../../gen/keyhold/v2alpha1/webhooks_pb.js";
import { useCan } from "./permissions.ts";

const { listAuditEvents } = AuditService.method;

/**
 * Returns a function that counts the events of the audit log that an endpoint has not selected from yet; undefined: unknown, in particular to
 * callers that may not read the log.
 */
export function useLag(): (endpoint: WebhookEndpoint) => number | undefined {
  const enabled = useCan()(listAuditEvents);
  const { data } = useQuery(listAuditEvents, { pageSize: 1, orderBy: "seq desc" }, { enabled });
  const last = data?.auditEvents[0]?.seq;
  return ({ nextSeq }) => (last === undefined ? undefined : Math.max(Number(last + 1n - nextSeq), 0));
}
