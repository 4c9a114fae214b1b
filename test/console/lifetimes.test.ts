import { expect, test } from "vitest";
import { defaultTtl, durationText, lifetimesOf, secondsOf } from "../../console/key-page/lifetimes.ts";
import { parseDuration } from "../../src/domain/duration.ts";

const DAY = 86_400;

const labels = (max: number | null) => lifetimesOf(max, "en").map(({ label }) => label);

test("a lifetime that is offered is within the maximum, which is offered itself", () => {
  expect(labels(null)).toEqual(["1 day", "7 days", "30 days", "90 days", "365 days"]);
  expect(labels(90 * DAY)).toEqual(["1 day", "7 days", "30 days", "90 days"]);
  expect(labels(36 * 3_600)).toEqual(["1 day", "36 hours"]);
  expect(labels(90)).toEqual(["90 seconds"]);
  for (const max of [1, 59, 3_600, DAY, 36 * 3_600, 3_650 * DAY])
    for (const { ttl } of lifetimesOf(max, "de")) expect(parseDuration(ttl, "ttl")).toBeLessThanOrEqual(max * 1_000);
});

test("90 days are chosen at first, or else the longest lifetime", () => {
  expect(defaultTtl(lifetimesOf(null, "en"))).toBe(`${90 * DAY}s`);
  expect(defaultTtl(lifetimesOf(7 * DAY, "en"))).toBe(`${7 * DAY}s`);
});

test("a duration of the API is shown in the language", () => {
  expect(secondsOf("7776000s")).toBe(90 * DAY);
  expect(secondsOf(undefined)).toBeNull();
  expect(durationText(90 * DAY, "de")).toBe("90 Tage");
  expect(durationText(5_400, "en")).toBe("90 minutes");
});
