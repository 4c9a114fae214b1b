/** A clock that never steps, in milliseconds from some moment: for durations. */
export type Monotonic = () => number;

export const systemMonotonic: Monotonic = () => performance.now();
