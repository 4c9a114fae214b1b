import "@mantine/charts/styles.css";
import { BarChart } from "@mantine/charts";
import { useLanguage } from "../../texts/language.tsx";
import type { Series } from "./usage-plot.tsx";

/** Colors that people with each kind of color blindness can tell apart (Okabe and Ito, and two of Tol), on light and dark. */
const COLORS = [
  ...["#0072b2", "#e69f00", "#d55e00", "#cc79a7", "#56b4e9"],
  ...["#999999", "#009e73", "#999933", "#882255", "#f0e442"],
];

interface Props {
  /** Pixels. */
  readonly height: number;
  readonly label: string;
  readonly series: readonly Series[];
  readonly times: readonly number[];
  readonly formatTime: (time: number) => string;
}

/** The bars alone. They are a picture for screen readers, which have the table. */
export function UsageBars({ height, label, series, times, formatTime }: Props) {
  const { language } = useLanguage();
  const data = times.map((time) => ({
    time: formatTime(time),
    ...Object.fromEntries(series.map(({ counts }, index) => [`s${index}`, counts.get(time) ?? 0])),
  }));
  return (
    <BarChart
      role="img"
      aria-label={label}
      accessibilityLayer={false}
      h={height}
      type="stacked"
      withLegend
      legendProps={{ verticalAlign: "bottom" }}
      dataKey="time"
      data={data}
      series={series.map(({ title, color }, index) => ({
        name: `s${index}`,
        label: title,
        color: COLORS[color % COLORS.length] ?? "gray",
      }))}
      valueFormatter={(value) => value.toLocaleString(language)}
      yAxisProps={{ allowDecimals: false, width: 48, tickFormatter: compact(language) }}
    />
  );
}

function compact(language: string): (value: number) => string {
  const format = new Intl.NumberFormat(language, { notation: "compact" });
  return (value) => format.format(value);
}
