import { useInfiniteQuery } from "@connectrpc/connect-query";
import { Button, Group, Text, TextInput } from "@mantine/core";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import type { FormEvent } from "react";
import { type Actor, ActorsService } from "../../gen/keyhold/v2alpha1/actors_pb.js";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { ErrorAlert } from "../parts/error-alert.tsx";
import { quoted } from "../parts/filter-text.ts";
import { LinkAnchor } from "../parts/links.tsx";
import { Page } from "../parts/page.tsx";
import { PageLoader } from "../parts/page-loader.tsx";
import { Time } from "../parts/time.tsx";
import { loadMoreOf } from "../session/load-more.ts";
import { actors } from "../texts/actors.ts";
import { common } from "../texts/common.ts";
import { useTexts } from "../texts/language.tsx";

const { listActors } = ActorsService.method;

const PAGE_SIZE = 100;

const route = getRouteApi("/actors");

/** Lists the actors with limits, filtered by the URL. */
export function ActorsPage() {
  const t = useTexts(actors);
  const { pages } = useTexts(common);
  const { actor: [beginning = ""] = [], limit: [limit = ""] = [] } = route.useSearch();
  const { data, error, hasNextPage, fetchNextPage, refetch } = useInfiniteQuery(
    listActors,
    { filter: filterOf(beginning, limit), pageSize: PAGE_SIZE, pageToken: "" },
    { pageParamKey: "pageToken", getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined },
  );
  const columns = useColumns();
  const rows = data?.pages.flatMap((page) => page.actors);
  const loadMore = loadMoreOf({ hasNextPage, fetchNextPage });
  return (
    <Page title={pages.actors}>
      <Text size="sm">{t.listed}</Text>
      <ActorSearch key={JSON.stringify([beginning, limit])} beginning={beginning} limit={limit} />
      <ErrorAlert error={error} onRetry={() => void refetch()} />
      {rows !== undefined && (
        <>
          <Text role="status" size="sm" c="dimmed">
            {t.shown(rows.length, !hasNextPage)}
          </Text>
          <DataTable
            label={pages.actors}
            columns={columns}
            rows={rows}
            idOf={({ actorId }) => actorId}
            onEnd={loadMore}
          />
        </>
      )}
      {rows === undefined && error === null && <PageLoader />}
      <OpenActor />
    </Page>
  );
}

/** Returns an AIP-160 expression. */
function filterOf(beginning: string, limit: string): string {
  return [
    ...(beginning === "" ? [] : [`actor_id=${quoted(beginning, "*")}`]),
    ...(limit === "" ? [] : [`(rate_limits:${quoted(limit)} OR quotas:${quoted(limit)})`]),
  ].join(" AND ");
}

function ActorSearch({ beginning, limit }: { readonly beginning: string; readonly limit: string }) {
  const t = useTexts(actors);
  const navigate = useNavigate();
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const entered = Object.entries(Object.fromEntries(new FormData(event.currentTarget)));
    const search = entered.flatMap(([name, value]) => (value === "" ? [] : [[name, [String(value).trim()]]]));
    void navigate({ to: "/actors", search: Object.fromEntries(search) });
  };
  return (
    <search>
      <form onSubmit={submit}>
        <Group align="end" gap="xs">
          <TextInput name="actor" label={t.beginning} defaultValue={beginning} flex="2 1 12rem" />
          <TextInput name="limit" label={t.limit} defaultValue={limit} flex="1 1 9rem" />
          <Button type="submit" variant="default">
            {t.search}
          </Button>
          <Button variant="subtle" onClick={() => void navigate({ to: "/actors" })}>
            {t.clear}
          </Button>
        </Group>
      </form>
    </search>
  );
}

/** The way to actors for which no limits were set yet, which the list does not have. */
function OpenActor() {
  const t = useTexts(actors);
  const navigate = useNavigate();
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const actorId = String(new FormData(event.currentTarget).get("actorId")).trim();
    if (actorId !== "") void navigate({ to: "/actors/$actorId", params: { actorId } });
  };
  return (
    <form onSubmit={submit}>
      <Group align="end" gap="xs">
        <TextInput name="actorId" label={t.open} placeholder={t.openHint} maxLength={255} flex="0 1 20rem" />
        <Button type="submit" variant="default">
          {t.go}
        </Button>
      </Group>
    </form>
  );
}

function useColumns(): readonly Column<Actor>[] {
  const t = useTexts(actors);
  const { none } = useTexts(common);
  const namesOf = (limits: readonly { readonly name: string }[]) => limits.map(({ name }) => name).join(", ") || none;
  return [
    {
      header: t.actor,
      cell: ({ actorId }) => (
        <LinkAnchor to="/actors/$actorId" params={{ actorId }}>
          {actorId}
        </LinkAnchor>
      ),
    },
    { header: t.rateLimits, cell: ({ rateLimits }) => namesOf(rateLimits) },
    { header: t.quotas, cell: ({ quotas }) => namesOf(quotas) },
    {
      header: t.updated,
      cell: ({ updateTime }) => updateTime !== undefined && <Time date={updateTime} />,
      isSecondary: true,
    },
  ];
}
