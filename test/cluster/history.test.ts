import { describe, expect, test } from "vitest";
import type { SessionPosition } from "../../src/cluster/change-feed.ts";
import { DatabaseHistory } from "../../src/cluster/history.ts";

/** A position in the write-ahead log of system 7 at a time; the timeline has PostgreSQL's file name form. */
const position = (
  timeline: number,
  lsn: bigint,
  time: number,
  more: Partial<SessionPosition> = {},
): SessionPosition => ({
  server: `7/0000000${timeline}/100.5`,
  lsn,
  time,
  promotedAt: null,
  acceptTime: null,
  log: null,
  ...more,
});

/** A history with timeline 2 at 1000, 2000 and 3000 bytes, one second apart. */
function known(): DatabaseHistory {
  const history = new DatabaseHistory();
  for (const step of [1, 2, 3]) history.note(position(2, BigInt(step * 1000), step * 1000));
  return history;
}

test("an unknown database is accepted", () => {
  expect(new DatabaseHistory().check(position(2, 1n, 0))).toBeNull();
});

test.each([3000n, 3001n])("the same timeline is accepted at %s", (lsn) => {
  expect(known().check(position(2, lsn, 4000))).toBeNull();
});

test.each([
  [
    "another system",
    { ...position(2, 9000n, 4000), server: "8/00000002/100.5" },
    "its system identifier is 8, but was 7",
  ],
  [
    "the same timeline at an earlier position",
    position(2, 2500n, 4000),
    "a backup was restored: its WAL ends at 0/9C4, 500 bytes before the durable LSN 0/BB8",
  ],
  ["an earlier timeline", position(1, 9000n, 4000), "it is on timeline 1, but was on 2"],
  [
    "a timeline that begins too early",
    position(3, 9000n, 4000, { promotedAt: 1999n }),
    "a promoted standby started timeline 3: its WAL ends at 0/7CF",
  ],
])("%s is refused with the missing part and the remedy", (_, found, reason) => {
  expect(() => known().check(found)).toThrow(reason);
  expect(() => known().check(found)).toThrow("run `keyhold cluster accept-database`");
});

describe("an audit log of which 10 events are known", () => {
  /** Checks a database of which the events 0 to 9 are known. */
  const checked = (found: SessionPosition) => {
    const history = known();
    history.noteLog({ size: 10, salt: "s10" });
    return history.check(found);
  };

  test.each([
    ["fewer events", { size: 9, salt: "s9" }],
    ["another last event", { size: 10, salt: "other" }],
  ])("is not one with %s, however long the write-ahead log", (_, log) => {
    expect(() => checked(position(2, 9000n, 4000, { log }))).toThrow(
      "a backup was restored: its audit log lacks event 9",
    );
  });

  test.each([
    ["the same events", { log: { size: 10, salt: "s10" } }],
    ["more events", { log: { size: 11, salt: "s11" } }],
    ["a last event that was erased or pruned", { log: null }],
    // Of changes that were not acknowledged.
    [
      "fewer events on a standby that has every durable change",
      { server: "7/00000003/100.5", promotedAt: 3000n, log: { size: 9, salt: "s9" } },
    ],
  ])("is one with %s", (_, more) => {
    expect(() => checked(position(2, 9000n, 4000, more))).not.toThrow();
  });

  test("is forgotten when the loss was accepted", () => {
    const history = known();
    history.noteLog({ size: 10, salt: "s10" });
    const found = position(2, 9000n, 4000, { log: { size: 9, salt: "s9" } });
    expect(() => history.check(found)).toThrow();
    history.check({ ...found, acceptTime: 4000 });
    expect(history.check({ ...found, acceptTime: 4000 })).toBeNull();
  });
});

test("the last position that still exists shows since when changes may be lost", () => {
  const found = position(3, 9000n, 4000, { promotedAt: 2500n });
  expect(() => known().check(found)).toThrow("changes since 1970-01-01T00:00:02.000Z may be lost");
});

describe("a new timeline", () => {
  test("without a loss is logged", () => {
    const note = known().check(position(3, 9000n, 4000, { promotedAt: 3000n }));
    expect(note).toMatchObject({
      level: "info",
      message: expect.stringContaining("timeline 3, but was on 2; all changes known to be durable are present"),
    });
  });

  test("of a server restarted since is accepted with a warning", () => {
    expect(known().check(position(3, 9000n, 4000))).toMatchObject({
      level: "warn",
      message: expect.stringContaining("missing changes are unknown"),
    });
  });
});

describe("an operator", () => {
  const lost = position(2, 500n, 4000);

  test("may accept a loss once", () => {
    const history = known();
    expect(history.check({ ...lost, acceptTime: 3500 })).toMatchObject({ level: "warn" });
    history.note({ ...lost, lsn: null });
    expect(history.check({ ...lost, time: 5000, acceptTime: 3500 })).toBeNull();
    history.note(position(2, 5000n, 6000));
    expect(() => history.check({ ...lost, time: 7000, acceptTime: 3500 })).toThrow("a backup was restored");
  });

  test("has not accepted a loss when the acceptance is part of the backup", () => {
    expect(() => known().check({ ...lost, acceptTime: 2999 })).toThrow("a backup was restored");
  });
});

test("an uncertain position updates only the time", () => {
  const history = known();
  history.note({ ...position(2, 9000n, 4000), lsn: null });
  expect(history.check(position(2, 3000n, 5000))).toBeNull();
});

test("a refused database stays refused even when its log has grown long enough, until it is accepted", () => {
  const history = known();
  expect(() => history.check(position(2, 500n, 4000))).toThrow("a backup was restored");
  expect(() => history.check(position(2, 9000n, 5000))).toThrow("a backup was restored");
  expect(history.check(position(2, 9500n, 6000, { acceptTime: 5500 }))).toMatchObject({ level: "warn" });
});

test("an acceptance counts even if the clock of the database is behind", () => {
  const history = known();
  const lost = position(2, 500n, -90_000, { acceptTime: -95_000 });
  expect(() => history.check(lost)).toThrow("a backup was restored");
  expect(history.check({ ...lost, acceptTime: -85_000 })).toMatchObject({ level: "warn" });
});
