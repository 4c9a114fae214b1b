import { useQuery } from "@connectrpc/connect-query";
import { Group, Stack, Text } from "@mantine/core";
import { UsageService } from "../../../gen/keyhold/v2alpha1/usage_pb.js";
import { useCan } from "../../session/permissions.ts";
import { useLanguage, useTexts } from "../../texts/language.tsx";
import { usage } from "../../texts/usage.ts";
import { ErrorAlert } from "../error-alert.tsx";
import { LinkAnchor } from "../links.tsx";
import { PageLoader } from "../page-loader.tsx";
import { stepsOf } from "./usage-period.ts";
import { UsagePlot } from "./usage-plot.tsx";
import { pointOf } from "./use-usage.ts";

const { queryUsage, getKeyUsage } = UsageService.method;

/** Shows how often a key was verified in the last 30 days. */
export function KeyUsage({ keyId }: { readonly keyId: string }) {
  const t = useTexts(usage);
  const { language } = useLanguage();
  const can = useCan();
  const { step, startTime } = stepsOf("30d");
  const { data, error, refetch } = useQuery(getKeyUsage, { keyId, step, startTime });
  if (error !== null) return <ErrorAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <PageLoader />;
  const { validCount, rejectedCount, usageCounts } = data;
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Text size="sm">{t.sums(validCount.toLocaleString(language), rejectedCount.toLocaleString(language))}</Text>
        {can(queryUsage) && (
          <LinkAnchor to="/usage" search={{ key: [keyId], period: ["30d"] }} size="sm">
            {t.more}
          </LinkAnchor>
        )}
      </Group>
      <UsagePlot period="30d" points={usageCounts.map(pointOf)} />
    </Stack>
  );
}
