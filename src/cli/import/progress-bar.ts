/** What an import says while it runs. */
export interface ProgressBar {
  /** `done` of `total` bytes; total 0: nobody knows. */
  show(rows: number, failed: number, done: number, total: number): void;
  /** Something that people should know, beside the numbers. */
  say(text: string): void;
  end(): void;
}

/** Milliseconds between two lines: one that is written over, on a terminal, and else lines of a log. */
const [ON_TERMINAL, IN_LOG] = [200, 10_000];

export const silentProgressBar: ProgressBar = { show: () => undefined, say: () => undefined, end: () => undefined };

/** `from` and `rows`: what an earlier run has done, which counts not for the rate of this one. */
export function createProgressBar(stream: NodeJS.WriteStream, from: number, earlierRows: number): ProgressBar {
  const begin = performance.now();
  const { isTTY } = stream;
  let last = isTTY ? Number.NEGATIVE_INFINITY : begin;
  const clear = isTTY ? "\r\x1b[K" : "";
  return {
    show: (rows, failed, done, total) => {
      const now = performance.now();
      if (now - last < (isTTY ? ON_TERMINAL : IN_LOG)) return;
      last = now;
      const seconds = (now - begin) / 1000;
      const line = lineOf({
        rows,
        failed,
        done,
        total,
        rate: (rows - earlierRows) / seconds,
        speed: (done - from) / seconds,
      });
      stream.write(isTTY ? clear + line : `${line}\n`);
    },
    say: (text) => stream.write(`${clear}${text}\n`),
    end: () => stream.write(clear),
  };
}

interface Reading {
  readonly rows: number;
  readonly failed: number;
  readonly done: number;
  readonly total: number;
  /** Rows and bytes a second. */
  readonly rate: number;
  readonly speed: number;
}

export function lineOf({ rows, failed, done, total, rate, speed }: Reading): string {
  const parts = [`${count(rows)} rows`, `${count(rate)}/s`];
  if (total > 0) parts.push(`${((100 * done) / total).toFixed(1)}%`, `${duration((total - done) / speed)} left`);
  if (failed > 0) parts.push(`${count(failed)} failed`);
  return parts.join("  ");
}

function count(value: number): string {
  return Math.round(value).toLocaleString("en-GB");
}

/** `m:ss`, or `h:mm:ss`. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return "-:--";
  const whole = Math.ceil(seconds);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  const tail = String(whole % 60).padStart(2, "0");
  return hours === 0 ? `${minutes}:${tail}` : `${hours}:${String(minutes).padStart(2, "0")}:${tail}`;
}
