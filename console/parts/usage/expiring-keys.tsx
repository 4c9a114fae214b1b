import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@connectrpc/connect-query";
import { Group, Paper, Text } from "@mantine/core";
import { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { useTexts } from "../../texts/language.tsx";
import { overview } from "../../texts/overview.ts";
import { ErrorAlert } from "../error-alert.tsx";
import { LinkAnchor } from "../links.tsx";
import { PageLoader } from "../page-loader.tsx";

const DAY = 24 * 3_600_000;

/** Days, of which the last is the longest. */
const SPANS = [7, 30] as const;

/** More keys are not counted. */
const MAX_KEYS = 100;

/** The parts of the filter of the list of keys. */
const filterOf = (days: number) => ["status=active", `expire_time > now() AND expire_time <= now() + "${days}d"`];

/** Counts the active keys that expire soon, with links to their lists. */
export function ExpiringKeys() {
  const t = useTexts(overview);
  const { data, error, refetch } = useQuery(ApiKeysService.method.listApiKeys, {
    filter: filterOf(30)
      .map((part) => `(${part})`)
      .join(" AND "),
    orderBy: "expire_time",
    pageSize: MAX_KEYS,
  });
  if (error !== null) return <ErrorAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <PageLoader />;
  const { apiKeys, nextPageToken } = data;
  const textOf = (days: number) => {
    const count = apiKeys.filter(({ expireTime }) => isWithin(expireTime, days)).length;
    if (count === 0) return t.none;
    return count === apiKeys.length && nextPageToken !== "" ? t.atLeast(count) : String(count);
  };
  return (
    <Group gap="sm">
      {SPANS.map((days) => (
        <Paper key={days} withBorder p="sm">
          <Text fw={700} size="lg">
            {textOf(days)}
          </Text>
          <LinkAnchor to="/keys" search={{ filter: filterOf(days) }}>
            {t.within(days)}
          </LinkAnchor>
        </Paper>
      ))}
    </Group>
  );
}

function isWithin(time: Timestamp | undefined, days: number): boolean {
  return time !== undefined && timestampMs(time) <= Date.now() + days * DAY;
}
