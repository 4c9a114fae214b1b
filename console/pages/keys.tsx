import { useInfiniteQuery } from "@connectrpc/connect-query";
import { Group, Text } from "@mantine/core";
import { getRouteApi } from "@tanstack/react-router";
import type { ApiKey } from "../../gen/keyhold/v2alpha1/api_key_pb.js";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { ErrorAlert } from "../parts/error-alert.tsx";
import { joinFilter } from "../parts/filter-bar.tsx";
import { BulkActions } from "../parts/keys/bulk-actions.tsx";
import { KeyFilters } from "../parts/keys/key-filters.tsx";
import { StatusBadge } from "../parts/keys/status-badge.tsx";
import { LinkAnchor, LinkButton } from "../parts/links.tsx";
import { Page } from "../parts/page.tsx";
import { PageLoader } from "../parts/page-loader.tsx";
import { Time } from "../parts/time.tsx";
import { loadMoreOf } from "../session/load-more.ts";
import { useCan } from "../session/permissions.ts";
import { common } from "../texts/common.ts";
import { key } from "../texts/key.ts";
import { keys } from "../texts/keys.ts";
import { useTexts } from "../texts/language.tsx";

const PAGE_SIZE = 100;

const route = getRouteApi("/keys");

/** Lists keys of both kinds, filtered by the URL. */
export function KeysPage() {
  const t = useTexts(keys);
  const names = useTexts(common).pages;
  const can = useCan();
  const { filter = [] } = route.useSearch();
  const expression = joinFilter(filter);
  const { data, error, hasNextPage, fetchNextPage, refetch } = useInfiniteQuery(
    ApiKeysService.method.listApiKeys,
    { filter: expression, pageSize: PAGE_SIZE, pageToken: "" },
    { pageParamKey: "pageToken", getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined },
  );
  const columns = useColumns();
  const rows = data?.pages.flatMap(({ apiKeys }) => apiKeys);
  const loadMore = loadMoreOf({ hasNextPage, fetchNextPage });
  return (
    <Page
      title={names.keys}
      actions={
        <>
          {can("ImportedApiKeysService/BatchCreateImportedApiKeys") && (
            <LinkButton to="/keys/import" variant="default">
              {names.importKeys}
            </LinkButton>
          )}
          {can("IssuedApiKeysService/CreateIssuedApiKey") && <LinkButton to="/keys/new">{names.newKey}</LinkButton>}
        </>
      }
    >
      <KeyFilters filter={filter} />
      <ErrorAlert error={error} onRetry={() => void refetch()} />
      {rows === undefined ? (
        error === null && <PageLoader />
      ) : (
        <>
          <Group justify="space-between">
            <Text role="status" size="sm" c="dimmed">
              {t.shown(rows.length, !hasNextPage)}
            </Text>
            {filter.length > 0 && rows.length > 0 && <BulkActions filter={expression} />}
          </Group>
          <DataTable label={names.keys} columns={columns} rows={rows} idOf={({ keyId }) => keyId} onEnd={loadMore} />
        </>
      )}
    </Page>
  );
}

function useColumns(): readonly Column<ApiKey>[] {
  const t = useTexts(key);
  const { never } = useTexts(common);
  const time = (date: ApiKey["expireTime"]) => (date === undefined ? never : <Time date={date} />);
  return [
    {
      header: t.name,
      cell: ({ name, keyId }) => (
        <LinkAnchor to="/keys/$keyId" params={{ keyId }}>
          {name}
        </LinkAnchor>
      ),
    },
    { header: t.status, cell: ({ status }) => <StatusBadge status={status} /> },
    { header: t.actor, cell: ({ actorId }) => actorId },
    { header: t.hint, cell: ({ hint }) => <span className="monospace">{hint}</span>, isSecondary: true },
    { header: t.kind, cell: ({ kind }) => t.kinds[kind], isSecondary: true },
    { header: t.created, cell: ({ createTime }) => time(createTime), isSecondary: true },
    { header: t.expires, cell: ({ expireTime }) => time(expireTime), isSecondary: true },
    { header: t.lastUsed, cell: ({ lastUsedTime }) => time(lastUsedTime), isSecondary: true },
  ];
}
