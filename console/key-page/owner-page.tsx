import { useInfiniteQuery } from "@connectrpc/connect-query";
import { Box, Button, Group, Paper, Stack, Text, Title } from "@mantine/core";
import { lazy, type ReactNode, Suspense, useState } from "react";
import type { ApiKey } from "../../gen/keyhold/v2alpha1/api_key_pb.js";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { ErrorAlert } from "../parts/error-alert.tsx";
import { PageLoader } from "../parts/page-loader.tsx";
import { ReturnFocus } from "../parts/return-focus.tsx";
import { Time } from "../parts/time.tsx";
import { loadMoreOf } from "../session/load-more.ts";
import { useCaller, useCan } from "../session/permissions.ts";
import { common } from "../texts/common.ts";
import { useTexts } from "../texts/language.tsx";
import { ownerPage } from "../texts/owner-page.ts";
import { session } from "../texts/session.ts";
import { useBrandTitle } from "./brand.tsx";
import { Header } from "./header.tsx";
import { KeyCard } from "./key-card.tsx";

const CreateKey = lazy(async () => ({ default: (await import("./create-key.tsx")).CreateKey }));

const PAGE_SIZE = 50;

/** The keys of one actor, for their owner. */
export function OwnerPage() {
  const t = useTexts(ownerPage);
  const { expires } = useTexts(session);
  const can = useCan();
  const { expireTime } = useCaller();
  const [isCreating, setCreating] = useState(false);
  const { data, error, hasNextPage, isFetchingNextPage, fetchNextPage, refetch } = useInfiniteQuery(
    ApiKeysService.method.listApiKeys,
    { pageSize: PAGE_SIZE, pageToken: "" },
    { pageParamKey: "pageToken", getNextPageParam: ({ nextPageToken }) => nextPageToken || undefined },
  );
  const rows = data?.pages.flatMap(({ apiKeys }) => apiKeys);
  useBrandTitle(t.title);
  const create = can("IssuedApiKeysService/CreateIssuedApiKey") && (
    <Button onClick={() => setCreating(true)}>{t.create}</Button>
  );
  const isEmpty = rows?.length === 0;
  return (
    <>
      <Header />
      <Box component="main" id="content" tabIndex={-1} p="md" maw="66rem" mx="auto" style={{ outline: "none" }}>
        <Stack>
          <Group justify="space-between">
            <Title order={1} size="h2">
              {t.title}
            </Title>
            {!isEmpty && create}
          </Group>
          <ErrorAlert error={error} onRetry={() => void refetch()} />
          {rows === undefined && error === null && <PageLoader />}
          {isEmpty && <Empty>{create}</Empty>}
          {rows !== undefined && (
            <KeyList rows={rows} isLoading={isFetchingNextPage} loadMore={loadMoreOf({ hasNextPage, fetchNextPage })} />
          )}
          {expireTime !== undefined && (
            <Text size="sm" c="dimmed">
              {expires}: <Time date={expireTime} />
            </Text>
          )}
        </Stack>
      </Box>
      {isCreating && (
        <ReturnFocus>
          <Suspense>
            <CreateKey onClose={() => setCreating(false)} />
          </Suspense>
        </ReturnFocus>
      )}
    </>
  );
}

function Empty({ children }: { readonly children: ReactNode }) {
  const t = useTexts(ownerPage);
  return (
    <Paper withBorder p="xl">
      <Stack align="center" ta="center">
        <Text fw={600}>{t.empty}</Text>
        <Text>{t.emptyDetail}</Text>
        {children}
      </Stack>
    </Paper>
  );
}

interface ListProps {
  readonly rows: readonly ApiKey[];
  readonly isLoading: boolean;
  /** Undefined: these are all. */
  readonly loadMore: (() => void) | undefined;
}

function KeyList({ rows, isLoading, loadMore }: ListProps) {
  const t = useTexts(common);
  return (
    <>
      {rows.map((apiKey) => (
        <KeyCard key={apiKey.keyId} apiKey={apiKey} />
      ))}
      {loadMore !== undefined && (
        <Button variant="default" loading={isLoading} onClick={loadMore} style={{ alignSelf: "center" }}>
          {t.loadMore}
        </Button>
      )}
    </>
  );
}
