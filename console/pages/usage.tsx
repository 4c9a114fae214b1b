import { Text, Title } from "@mantine/core";
import { getRouteApi } from "@tanstack/react-router";
import { ErrorAlert } from "../parts/error-alert.tsx";
import { Page } from "../parts/page.tsx";
import { PageLoader } from "../parts/page-loader.tsx";
import { UsageFilters } from "../parts/usage/usage-filters.tsx";
import { stepsOf } from "../parts/usage/usage-period.ts";
import { UsagePlot } from "../parts/usage/usage-plot.tsx";
import { UsageRanking } from "../parts/usage/usage-ranking.tsx";
import { requestOf, selectionOf } from "../parts/usage/usage-search.ts";
import { sumOf, useUsage } from "../parts/usage/use-usage.ts";
import { common } from "../texts/common.ts";
import { useLanguage, useTexts } from "../texts/language.tsx";
import { usage } from "../texts/usage.ts";

const route = getRouteApi("/usage");

/** Shows how often keys were verified, or the units of their limits, as selected by the URL. */
export function UsagePage() {
  const t = useTexts(usage);
  const { language } = useLanguage();
  const { pages } = useTexts(common);
  const selection = selectionOf(route.useSearch());
  const { period, by, isUnits, limit } = selection;
  const { step, startTime } = stepsOf(period);
  const groupBy = [isUnits ? "limit" : "outcome"];
  const { points, error, refetch } = useUsage({ ...requestOf(selection), startTime, step, groupBy });
  const total = points === undefined || (isUnits && limit === "") ? undefined : sumOf(points);
  return (
    <Page title={pages.usage}>
      <UsageFilters selection={selection} />
      <ErrorAlert error={error} onRetry={() => void refetch()} />
      {points !== undefined && (
        <>
          {total !== undefined && (
            <Text role="status">{`${isUnits ? t.units : t.verifications}: ${total.toLocaleString(language)}`}</Text>
          )}
          <UsagePlot period={period} points={points} isUnits={isUnits} />
          <Title order={2} size="h4">
            {t.ranking(t.groupings[by])}
          </Title>
          <UsageRanking selection={selection} total={total} />
        </>
      )}
      {points === undefined && error === null && <PageLoader />}
    </Page>
  );
}
