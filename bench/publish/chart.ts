/** A row of a chart: subject and baseline. */
export interface Bars {
  readonly label: string;
  readonly subject: number;
  readonly baseline: number;
}

export interface Chart {
  readonly title: string;
  readonly unit: string;
  readonly subject: string;
  readonly baseline: string;
  readonly rows: readonly Bars[];
}

/** Pixels. */
const WIDTH = 760;
const LABELS = 250;
const FIGURES = 90;
const BAR = 16;
const ROW = 2 * BAR + 18;
const TOP = 70;

const SUBJECT = "#0b6e4f";
const BASELINE = "#9aa5b1";
const INK = "#1f2933";

/** Returns a chart of horizontal bars as SVG, with its own background, so that it is readable on a dark page. */
export function drawChart(chart: Chart): string {
  const { title, unit, subject, baseline, rows } = chart;
  const height = TOP + rows.length * ROW + 10;
  const greatest = Math.max(...rows.flatMap((row) => [row.subject, row.baseline]));
  const scale = (WIDTH - LABELS - FIGURES) / greatest;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">`,
    `<title>${escapeXml(title)}</title>`,
    `<rect width="${WIDTH}" height="${height}" fill="#ffffff"/>`,
    text(16, 28, `${title} (${unit})`, { size: 16, weight: "bold" }),
    legend(16, SUBJECT, subject),
    legend(LABELS, BASELINE, baseline),
    ...rows.flatMap((row, index) => drawRow(row, TOP + index * ROW, scale)),
    "</svg>",
  ];
  return `${parts.join("\n")}\n`;
}

function drawRow({ label, subject, baseline }: Bars, y: number, scale: number): string[] {
  return [
    text(16, y + BAR + 5, label),
    ...bar(y, subject, SUBJECT, scale),
    ...bar(y + BAR + 2, baseline, BASELINE, scale),
  ];
}

function bar(y: number, value: number, fill: string, scale: number): string[] {
  const width = Math.max(1, Math.round(value * scale));
  const figure = value >= 100 ? Math.round(value).toLocaleString("en-US") : Number(value.toPrecision(3)).toString();
  return [
    `<rect x="${LABELS}" y="${y}" width="${width}" height="${BAR}" fill="${fill}"/>`,
    text(LABELS + width + 6, y + BAR - 4, figure, { size: 12 }),
  ];
}

function legend(x: number, fill: string, label: string): string {
  return `<rect x="${x}" y="42" width="12" height="12" fill="${fill}"/>\n${text(x + 18, 53, label, { size: 12 })}`;
}

function text(x: number, y: number, content: string, { size = 13, weight = "normal" } = {}): string {
  const font = `font-family="system-ui, sans-serif" font-size="${size}" font-weight="${weight}" fill="${INK}"`;
  return `<text x="${x}" y="${y}" ${font}>${escapeXml(content)}</text>`;
}

function escapeXml(content: string): string {
  return content.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
