/** The wall clock of this process with a configurable offset. The monotonic clock is unchanged. */

const RealDate = Date;
const realNow = Date.now;
let offset = 0;

/** Milliseconds to add to the time from now on. */
export function setClockOffset(milliseconds: number): void {
  offset = milliseconds;
}

/** Puts `Date.now()` and `new Date()` under `setClockOffset`. Dates made otherwise, and `instanceof`, are as ever. */
export function replaceClock(): void {
  RealDate.now = () => realNow() + offset;
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [RealDate.now()] : args, newTarget),
  });
}
