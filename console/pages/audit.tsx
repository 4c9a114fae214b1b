import { useInfiniteQuery } from "@connectrpc/connect-query";
import { Group, Switch, Text } from "@mantine/core";
import { getRouteApi } from "@tanstack/react-router";
import { type AuditEvent, AuditService } from "../../gen/keyhold/v2alpha1/audit_pb.js";
import { useEventColumns } from "../parts/audit/audit-event-cells.tsx";
import { AuditFilters } from "../parts/audit/audit-filters.tsx";
import { useAuditTail } from "../parts/audit/audit-tail.ts";
import { VerifyLog } from "../parts/audit/verify-log.tsx";
import { DataTable } from "../parts/data-table.tsx";
import { ErrorAlert } from "../parts/error-alert.tsx";
import { joinFilter } from "../parts/filter-bar.tsx";
import { Page } from "../parts/page.tsx";
import { PageLoader } from "../parts/page-loader.tsx";
import { loadMoreOf } from "../session/load-more.ts";
import { useCan } from "../session/permissions.ts";
import { audit } from "../texts/audit.ts";
import { common } from "../texts/common.ts";
import { useTexts } from "../texts/language.tsx";

const PAGE_SIZE = 100;

const route = getRouteApi("/audit");

const { listAuditEvents, watchAuditEvents, getAuditCheckpoint, getAuditProof } = AuditService.method;

/** Lists the events of the audit log, newest first, filtered by the URL. */
export function AuditPage() {
  const names = useTexts(common).pages;
  const can = useCan();
  const { filter = [] } = route.useSearch();
  const expression = joinFilter(filter);
  return (
    <Page title={names.audit} actions={can(getAuditCheckpoint, getAuditProof) && <VerifyLog />}>
      <AuditFilters filter={filter} />
      <EventList key={expression} filter={expression} />
    </Page>
  );
}

function EventList({ filter }: { readonly filter: string }) {
  const t = useTexts(audit);
  const names = useTexts(common).pages;
  const can = useCan();
  const { live } = route.useSearch();
  const navigate = route.useNavigate();
  const { data, error, hasNextPage, fetchNextPage, refetch } = useInfiniteQuery(
    listAuditEvents,
    { filter, pageSize: PAGE_SIZE, pageToken: "" },
    { pageParamKey: "pageToken", getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined },
  );
  const isLive = live !== undefined;
  const tail = useAuditTail(filter, isLive, () => void refetch());
  const columns = useEventColumns();
  const rows = data && newestOnce([...tail.events, ...data.pages.flatMap(({ auditEvents }) => auditEvents)]);
  const loadMore = loadMoreOf({ hasNextPage, fetchNextPage });
  const setLive = (isOn: boolean) =>
    void navigate({ search: ({ live: _, ...others }) => (isOn ? { ...others, live: ["on"] } : others), replace: true });
  return (
    <>
      <Group justify="space-between">
        <Text role="status" size="sm" c="dimmed">
          {rows !== undefined && t.shown(rows.length, !hasNextPage)}
          {isLive && ` · ${t.tailStates[tail.state]}`}
        </Text>
        {can(watchAuditEvents) && (
          <Switch label={t.live} checked={isLive} onChange={({ currentTarget }) => setLive(currentTarget.checked)} />
        )}
      </Group>
      <ErrorAlert error={isLive ? tail.error : null} />
      <ErrorAlert error={error} onRetry={() => void refetch()} />
      {rows === undefined ? (
        error === null && <PageLoader />
      ) : (
        <DataTable label={names.audit} columns={columns} rows={rows} idOf={({ seq }) => String(seq)} onEnd={loadMore} />
      )}
    </>
  );
}

/** The tail and the list both have the events that were recorded while the list was read. */
function newestOnce(events: readonly AuditEvent[]): readonly AuditEvent[] {
  return [...new Map(events.map((event) => [event.seq, event])).values()];
}
