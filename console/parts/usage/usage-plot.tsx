import { Box, Group, Stack, Switch, Text } from "@mantine/core";
import { lazy, Suspense, useState } from "react";
import { useLanguage, useTexts } from "../../texts/language.tsx";
import { OUTCOMES, outcomeName, usage } from "../../texts/usage.ts";
import { type Column, DataTable } from "../data-table.tsx";
import { Time } from "../time.tsx";
import { type Period, stepsOf } from "./usage-period.ts";
import type { Point } from "./use-usage.ts";

/** Only a page with a plot loads the library that draws it. */
const UsageBars = lazy(async () => ({ default: (await import("./usage-bars.tsx")).UsageBars }));

/** Pixels. */
const HEIGHT = 260;

/** The counts of an outcome, or the units of a limit, over time. */
export interface Series {
  readonly name: string;
  readonly title: string;
  /** Index of the color, which an outcome keeps whatever others are shown. */
  readonly color: number;
  readonly counts: ReadonlyMap<number, number>;
}

interface Props {
  readonly period: Period;
  /** By outcome, or units by limit. */
  readonly points: readonly Point[];
  readonly isUnits?: boolean;
}

/** Shows counts over time as bars, and as a table if that is wanted. */
export function UsagePlot({ period, points, isUnits = false }: Props) {
  const t = useTexts(usage);
  const [isTable, setTable] = useState(false);
  const { step, times } = stepsOf(period);
  const formatTime = useTimeFormat(step);
  const series = useSeries(points);
  if (series.length === 0) return <Text c="dimmed">{isUnits ? t.noUnits : t.none}</Text>;
  const label = t.overTime(isUnits ? t.units : t.verifications, t.periods[period]);
  return (
    <Stack gap="xs">
      <Suspense fallback={<Box h={HEIGHT} />}>
        <UsageBars height={HEIGHT} label={label} series={series} times={times} formatTime={formatTime} />
      </Suspense>
      <Group justify="space-between" gap="xs">
        <Switch label={t.asTable} checked={isTable} onChange={({ currentTarget }) => setTable(currentTarget.checked)} />
        <Text size="xs" c="dimmed">
          {step === "1d" ? `${t.inUtc} ${t.delay}` : t.delay}
        </Text>
      </Group>
      {isTable && <UsageTable label={label} hasTotal={!isUnits} step={step} series={series} times={times} />}
    </Stack>
  );
}

interface TableProps {
  readonly label: string;
  /** Whether the series can be added up: units of different limits cannot. */
  readonly hasTotal: boolean;
  readonly step: "1h" | "1d";
  readonly series: readonly Series[];
  readonly times: readonly number[];
}

/** The same numbers, the newest first, without the times at which there are none. */
function UsageTable({ label, hasTotal, step, series, times }: TableProps) {
  const t = useTexts(usage);
  const { language } = useLanguage();
  const formatTime = useTimeFormat(step);
  const totalOf = (time: number) => series.reduce((sum, { counts }) => sum + (counts.get(time) ?? 0), 0);
  const columns: readonly Column<number>[] = [
    {
      header: t.time,
      cell: (time) => (
        <Text span size="sm" style={{ whiteSpace: "nowrap" }}>
          {step === "1h" ? <Time date={new Date(time)} /> : formatTime(time)}
        </Text>
      ),
    },
    ...(hasTotal ? [{ header: t.total, cell: (time: number) => totalOf(time).toLocaleString(language) }] : []),
    ...series.map(({ title, counts }) => ({
      header: title,
      cell: (time: number) => (counts.get(time) ?? 0).toLocaleString(language),
    })),
  ];
  const rows = times.filter((time) => totalOf(time) > 0).toReversed();
  return <DataTable label={label} columns={columns} rows={rows} idOf={String} />;
}

function useSeries(points: readonly Point[]): readonly Series[] {
  const t = useTexts(usage);
  const names = [...new Set(points.map(({ name }) => name))].sort();
  const rank = (name: string) => (OUTCOMES.includes(name) ? OUTCOMES.indexOf(name) : OUTCOMES.length);
  return names
    .map((name, index) => ({
      name,
      title: outcomeName(t, name),
      color: OUTCOMES.includes(name) ? rank(name) : index,
      counts: new Map(points.filter((one) => one.name === name).map(({ time, count }) => [time, count])),
    }))
    .sort((a, b) => rank(a.name) - rank(b.name));
}

/** Hours are local, days are those of UTC. */
function useTimeFormat(step: "1h" | "1d"): (time: number) => string {
  const { language } = useLanguage();
  const format = new Intl.DateTimeFormat(
    language,
    step === "1h" ? { timeStyle: "short" } : { day: "numeric", month: "short", timeZone: "UTC" },
  );
  return (time) => format.format(time);
}
