import type { Measure } from "../harness/scenario.ts";
import type { Stage } from "../harness/stage.ts";
import { answerSize, soundRate, type WrkOptions, wrk } from "./wrk.ts";

/** A wrong answer is 200 all the same, but of another size: how far from the first round's the mean may be. */
const SIZE_TOLERANCE = 0.02;

/** Rounds of one load, in requests a second. What is asked was seen to be answered rightly before. */
export function httpLoad(stage: Stage, options: WrkOptions): Measure {
  let expected: number | null = null;
  return async () => {
    const result = await wrk(stage, options);
    const rate = soundRate(result);
    const size = answerSize(result);
    expected ??= size;
    if (Math.abs(size / expected - 1) > SIZE_TOLERANCE) {
      throw new Error(`answers of ${options.url} have ${size} bytes instead of ${expected}`);
    }
    return rate;
  };
}

export const JSON_HEADERS = { "content-type": "application/json" } as const;
export const PROTO_HEADERS = { "content-type": "application/proto" } as const;

/** As many as keep one core busy, with no queue that would hide a slow answer. */
export const CONNECTIONS = 64;
