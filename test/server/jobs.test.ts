import { expect, onTestFinished, test, vi } from "vitest";
import { systemClock, systemMonotonic } from "../../src/lib/clock.ts";
import { createJobs, type Job, type JobsOptions } from "../../src/server/jobs.ts";

function newJobs(options: Partial<JobsOptions> = {}) {
  const warnings: unknown[] = [];
  const log = { warn: (...line: unknown[]) => warnings.push(line) } as unknown as JobsOptions["log"];
  const jobs = createJobs({
    clock: systemClock,
    monotonic: systemMonotonic,
    log,
    ...options,
  });
  onTestFinished(() => jobs.stop());
  return { jobs, warnings };
}

/** A job whose runs end when the test says so. */
function heldJob(more: Partial<Job> = {}) {
  const runs: PromiseWithResolvers<void>[] = [];
  const started: PromiseWithResolvers<void>[] = [];
  const startOf = (place: number) => (started[place] ??= Promise.withResolvers());
  const job: Job = {
    name: "held",
    interval: 3_600_000,
    failureMessage: "the job failed",
    run: () => {
      const run = Promise.withResolvers<void>();
      runs.push(run);
      startOf(runs.length - 1).resolve();
      return run.promise;
    },
    ...more,
  };
  return { job, runs, started: (place: number) => startOf(place).promise };
}

test("a job runs at its interval, and its runs, failures, duration and last success are counted", async () => {
  const { jobs, warnings } = newJobs();
  const { job, runs, started } = heldJob({ interval: 20 });
  jobs.start(job);
  await started(0);
  expect(jobs.stats()).toMatchObject([{ name: "held", runs: 1, failures: 0, lastSuccess: null }]);
  runs[0]?.reject(new Error("no"));
  await started(1);
  expect(jobs.stats()).toMatchObject([{ runs: 2, failures: 1, lastSuccess: null }]);
  expect(warnings).toEqual([[{ err: expect.objectContaining({ message: "no" }) }, "the job failed"]]);
  const before = systemClock.now();
  runs[1]?.resolve();
  await started(2);
  expect(jobs.stats()[0]?.lastSuccess).toBeGreaterThanOrEqual(before);
  expect(jobs.stats()[0]?.duration).toBeGreaterThan(0);
  runs[2]?.resolve();
});

test("runs of a job do not overlap: triggers during a run lead to one more run", async () => {
  const { jobs } = newJobs();
  const { job, runs, started } = heldJob({ interval: 5 });
  const trigger = jobs.start(job);
  trigger();
  await started(0);
  for (let times = 0; times < 3; times++) trigger();
  await new Promise((resolve) => setTimeout(resolve, 30));
  expect(runs).toHaveLength(1);
  runs[0]?.resolve();
  await started(1);
  expect(runs).toHaveLength(2);
  runs[1]?.resolve();
});

test("stop waits for the run in progress, then for the last run, and nothing runs after it", async () => {
  const { jobs } = newJobs();
  const { job, runs, started } = heldJob({ runsAtStop: true });
  const trigger = jobs.start(job);
  trigger();
  await started(0);
  let isStopped = false;
  const stopping = jobs.stop().then(() => {
    isStopped = true;
  });
  expect(runs).toHaveLength(1);
  runs[0]?.resolve();
  await started(1);
  expect(isStopped).toBe(false);
  runs[1]?.resolve();
  await stopping;
  trigger();
  expect(runs).toHaveLength(2);
});

test("stop cancels a run after five seconds", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const { jobs } = newJobs();
  const cancelled = vi.fn();
  const { job } = heldJob({
    run: (signal) => {
      signal.addEventListener("abort", cancelled);
      return new Promise(() => {});
    },
  });
  jobs.start(job)();
  const stopped = jobs.stop();
  await vi.advanceTimersByTimeAsync(4_999);
  expect(cancelled).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(cancelled).toHaveBeenCalledOnce();
  await stopped;
});

test("stop repeats a last run that fails, for five seconds at most", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const { jobs, warnings } = newJobs();
  const startFailing = (failures: number) => {
    const run = vi.fn(async () => {
      if (run.mock.calls.length <= failures) throw new Error("no");
    });
    jobs.start({ ...heldJob().job, runsAtStop: true, retriesAtStop: true, run });
    return run;
  };
  const [twice, always] = [startFailing(2), startFailing(Number.POSITIVE_INFINITY)];
  const stopped = jobs.stop();
  await vi.advanceTimersByTimeAsync(5_000);
  await stopped;
  await vi.advanceTimersByTimeAsync(5_000);
  expect(twice).toHaveBeenCalledTimes(3);
  expect(always.mock.calls.length).toBeOneOf([10, 11]);
  expect(warnings).toHaveLength(2 + always.mock.calls.length);
});
