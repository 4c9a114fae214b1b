import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { useQuery } from "@connectrpc/connect-query";
import { Alert, Group, Text } from "@mantine/core";
import { UsageService } from "../../../gen/keyhold/v2alpha1/usage_pb.js";
import { useLanguage, useTexts } from "../../texts/language.tsx";
import { overview } from "../../texts/overview.ts";
import { outcomeName, usage } from "../../texts/usage.ts";
import { ErrorAlert } from "../error-alert.tsx";
import { LinkAnchor } from "../links.tsx";
import { PageLoader } from "../page-loader.tsx";
import { stepsOf } from "./usage-period.ts";
import { UsagePlot } from "./usage-plot.tsx";
import { type Point, pointOf, sumOf, useUsage } from "./use-usage.ts";

const WEEK = 7 * 24 * 3_600_000;

const groupBy = ["outcome"];

/** Shows the verifications of the last 24 hours, and whether more of them failed than in the week before. */
export function RecentVerifications() {
  const t = useTexts(overview);
  const { step, startTime, times } = stepsOf("24h");
  const [begin = 0] = times;
  const { points, error, refetch } = useUsage({ step, startTime, groupBy });
  const before = useQuery(UsageService.method.queryUsage, {
    ...{ startTime: timestampFromMs(begin - WEEK), endTime: startTime, groupBy },
  });
  if (error !== null) return <ErrorAlert error={error} onRetry={() => void refetch()} />;
  if (points === undefined) return <PageLoader />;
  return (
    <>
      <ErrorAlert error={before.error} onRetry={() => void before.refetch()} />
      {before.data !== undefined && <Failures now={points} before={before.data.usageCounts.map(pointOf)} />}
      <UsagePlot period="24h" points={points} />
      <Group>
        <LinkAnchor to="/usage">{t.more}</LinkAnchor>
      </Group>
    </>
  );
}

/** Fewer failures are chance. */
const MIN_FAILURES = 10;

const isFailure = ({ name }: Point) => name !== "VALID";

/** Returns the share of failures; undefined: there were no verifications. */
function failureShare(points: readonly Point[]): number | undefined {
  const all = sumOf(points);
  return all === 0 ? undefined : sumOf(points.filter(isFailure)) / all;
}

/** Returns whether the share has doubled and has risen by a hundredth of the verifications. */
function isUnusual(points: readonly Point[], now: number, before: number): boolean {
  return sumOf(points.filter(isFailure)) >= MIN_FAILURES && now >= 2 * before && now - before >= 0.01;
}

interface FailuresProps {
  readonly now: readonly Point[];
  readonly before: readonly Point[];
}

function Failures({ now, before }: FailuresProps) {
  const t = useTexts(overview);
  const outcomes = useTexts(usage);
  const { language } = useLanguage();
  const percent = new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: 1 }).format;
  const [share, shareBefore] = [failureShare(now), failureShare(before)];
  if (share === undefined) return null;
  const warns = shareBefore !== undefined && isUnusual(now, share, shareBefore);
  const [reason] = reasonsOf(now);
  const failures = sumOf(now.filter(isFailure));
  return (
    <Alert role={warns ? "alert" : "status"} color={warns ? "yellow" : "gray"} title={warns ? t.unusual : t.failures}>
      <Text size="sm">
        {t.share(percent(share))} {shareBefore === undefined ? t.noneBefore : t.before(percent(shareBefore))}{" "}
        {shareBefore !== undefined && !warns && t.usual}
      </Text>
      {reason !== undefined && (
        <Text size="sm">
          {t.reason(outcomeName(outcomes, reason.name), percent(reason.count / failures))}{" "}
          <LinkAnchor
            data-underline="always"
            style={{ color: "inherit" }}
            to="/usage"
            search={{ by: ["key"], outcome: [reason.name] }}
          >
            {t.whichKeys}
          </LinkAnchor>
        </Text>
      )}
    </Alert>
  );
}

/** Returns why verifications failed, the most frequent reason first. */
function reasonsOf(points: readonly Point[]): readonly { readonly name: string; readonly count: number }[] {
  const byName = Map.groupBy(points.filter(isFailure), ({ name }) => name);
  return [...byName].map(([name, of]) => ({ name, count: sumOf(of) })).sort((a, b) => b.count - a.count);
}
