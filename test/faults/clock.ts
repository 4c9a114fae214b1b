/** The wall clock of this process with a configurable offset. The monotonic clock is unchanged. */

const RealDate = Date;
const realNow = Date.now;
let offset = 0;

/** Sets the offset from the real time, in milliseconds. */
export function setClockOffset(milliseconds: number): void {
  offset = milliseconds;
}

/** Makes `Date.now()` and `new Date()` use the offset. Other constructors and `instanceof` are unchanged. */
export function replaceClock(): void {
  RealDate.now = () => realNow() + offset;
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args, newTarget) =>
      Reflect.construct(target, args.length === 0 ? [RealDate.now()] : args, newTarget),
  });
}
