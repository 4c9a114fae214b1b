import { useQuery } from "@connectrpc/connect-query";
import { Group, Stack, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { UsageService } from "../../../gen/keyhold/v2alpha1/usage_pb.js";
import { useLanguage, useTexts } from "../../texts/language.tsx";
import { usage } from "../../texts/usage.ts";
import { ErrorAlert } from "../error-alert.tsx";
import { PageLoader } from "../page-loader.tsx";
import { stepsOf } from "./usage-period.ts";
import { UsagePlot } from "./usage-plot.tsx";
import { pointOf } from "./use-usage.ts";

const { getKeyUsage } = UsageService.method;

interface Props {
  readonly keyId: string;
  /** A link to more of this usage. */
  readonly more?: ReactNode;
}

/** Shows how often a key was verified in the last 30 days. */
export function KeyUsage({ keyId, more }: Props) {
  const t = useTexts(usage);
  const { language } = useLanguage();
  const { step, startTime } = stepsOf("30d");
  const { data, error, refetch } = useQuery(getKeyUsage, { keyId, step, startTime });
  if (error !== null) return <ErrorAlert error={error} onRetry={() => void refetch()} />;
  if (data === undefined) return <PageLoader />;
  const { validCount, rejectedCount, usageCounts } = data;
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Text size="sm">{t.sums(validCount.toLocaleString(language), rejectedCount.toLocaleString(language))}</Text>
        {more}
      </Group>
      <UsagePlot period="30d" points={usageCounts.map(pointOf)} />
    </Stack>
  );
}
