/** Output of a running import. */
export interface ProgressBar {
  /** Shows `done` of `total` bytes; 0 if the total is unknown. */
  show(rows: number, failed: number, done: number, total: number): void;
  /** Writes a message. */
  log(text: string): void;
  end(): void;
}

/** Milliseconds between updates, which overwrite the line on a terminal and append lines elsewhere. */
const [ON_TERMINAL, IN_LOG] = [200, 10_000];

export const silentProgressBar: ProgressBar = { show: () => undefined, log: () => undefined, end: () => undefined };

/** `from` (bytes) and `earlierRows` were done by an earlier run and are excluded from the rates. */
export function createProgressBar(stream: NodeJS.WriteStream, from: number, earlierRows: number): ProgressBar {
  const started = performance.now();
  const { isTTY } = stream;
  let last = isTTY ? Number.NEGATIVE_INFINITY : started;
  const clear = isTTY ? "\r\x1b[K" : "";
  return {
    show: (rows, failed, done, total) => {
      const now = performance.now();
      if (now - last < (isTTY ? ON_TERMINAL : IN_LOG)) return;
      last = now;
      const seconds = (now - started) / 1000;
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
    log: (text) => stream.write(`${clear}${text}\n`),
    end: () => stream.write(clear),
  };
}

interface Status {
  readonly rows: number;
  readonly failed: number;
  readonly done: number;
  readonly total: number;
  /** Rows and bytes per second. */
  readonly rate: number;
  readonly speed: number;
}

export function lineOf({ rows, failed, done, total, rate, speed }: Status): string {
  const parts = [`${count(rows)} rows`, `${count(rate)}/s`];
  if (total > 0) parts.push(`${((100 * done) / total).toFixed(1)}%`, `${duration((total - done) / speed)} left`);
  if (failed > 0) parts.push(`${count(failed)} failed`);
  return parts.join("  ");
}

function count(value: number): string {
  return Math.round(value).toLocaleString("en-GB");
}

/** Formats `m:ss` or `h:mm:ss`. */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return "-:--";
  const whole = Math.ceil(seconds);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  const tail = String(whole % 60).padStart(2, "0");
  return hours === 0 ? `${minutes}:${tail}` : `${hours}:${String(minutes).padStart(2, "0")}:${tail}`;
}
