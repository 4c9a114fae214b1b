import { useQuery } from "@connectrpc/connect-query";
import { AuditService } from "../../../gen/keyhold/v2alpha1/audit_pb.js";
import { audit } from "../../texts/audit.ts";
import { useTexts } from "../../texts/language.tsx";
import { DataTable } from "../data-table.tsx";
import { ErrorAlert } from "../error-alert.tsx";
import { quoted } from "../filter-text.ts";
import { LinkAnchor } from "../links.tsx";
import { PageLoader } from "../page-loader.tsx";
import { Section } from "../section.tsx";
import { useEventColumns } from "./audit-event-cells.tsx";

const { listAuditEvents } = AuditService.method;

const PAGE_SIZE = 10;

interface Props {
  readonly title: string;
  /** The key whose events are shown; undefined: those of all. */
  readonly keyId?: string;
}

/** The last events of the audit log, for callers that may read it. */
export function AuditEvents({ title, keyId }: Props) {
  const t = useTexts(audit);
  const filter = keyId === undefined ? "" : `key_id=${quoted(keyId)}`;
  const { data, error, refetch } = useQuery(listAuditEvents, { filter, pageSize: PAGE_SIZE });
  const columns = useEventColumns({ isOfKey: keyId !== undefined });
  return (
    <Section
      title={title}
      aside={
        <LinkAnchor to="/audit" search={keyId === undefined ? {} : { filter: [filter] }}>
          {t.all}
        </LinkAnchor>
      }
    >
      <ErrorAlert error={error} onRetry={() => void refetch()} />
      {data === undefined ? (
        error === null && <PageLoader />
      ) : (
        <DataTable label={title} columns={columns} rows={data.auditEvents} idOf={({ seq }) => String(seq)} />
      )}
    </Section>
  );
}
