import { ERASE_LINE, write } from "./output.ts";

/** Milliseconds between updates, which overwrite the line on a terminal and append lines elsewhere. */
const [ON_TERMINAL, IN_LOG] = [200, 10_000];

interface Progress {
  readonly items: number;
  /** Progress in the unit of the total, such as bytes. */
  readonly done: number;
  /** 0 if it is unknown. */
  readonly total: number;
  readonly failed: number;
}

/** Rates exclude what was done at `start`, such as by an earlier run; without it, what the first progress has, which is not shown. */
export function createProgressBar(stream: NodeJS.WriteStream, unit: string, start?: Pick<Progress, "items" | "done">) {
  const { isTTY } = stream;
  let [first, began] = [start, performance.now()];
  let last = isTTY ? Number.NEGATIVE_INFINITY : began;
  return {
    show: ({ items, done, total, failed }: Progress) => {
      const now = performance.now();
      if (first === undefined) [first, began] = [{ items, done }, now];
      else if (now - last >= (isTTY ? ON_TERMINAL : IN_LOG)) {
        last = now;
        const seconds = (now - began) / 1000;
        const parts = [`${count(items)} ${unit}`, `${count((items - first.items) / seconds)}/s`];
        const left = (total - done) / ((done - first.done) / seconds);
        if (total > 0) parts.push(`${((100 * done) / total).toFixed(1)}%`, `${duration(left)} left`);
        if (failed > 0) parts.push(`${count(failed)} failed`);
        void write([ERASE_LINE, parts.join("  "), isTTY ? "" : "\n"], stream);
      }
    },
    log: (text: string) => write([ERASE_LINE, text, "\n"], stream),
    end: () => write(ERASE_LINE, stream),
  };
}

function count(value: number): string {
  return Math.round(value).toLocaleString("en-GB");
}

/** Formats `m:ss` or `h:mm:ss`. */
function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return "-:--";
  const whole = Math.ceil(seconds);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  const tail = String(whole % 60).padStart(2, "0");
  return hours === 0 ? `${minutes}:${tail}` : `${hours}:${String(minutes).padStart(2, "0")}:${tail}`;
}
