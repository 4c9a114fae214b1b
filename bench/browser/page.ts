/** Runs in the pages of the benchmark of the console, before their own scripts. */

/** Milliseconds. A longer task is a long task (W3C Long Tasks §2.1); a longer frame is seen as a pause. */
const LONG = 50;

/** Milliseconds without a long task after which a page is interactive. */
const QUIET = 1000;

const longTasks: PerformanceEntry[] = [];
new PerformanceObserver((list) => longTasks.push(...list.getEntries())).observe({ type: "longtask", buffered: true });

const heading = appearance("h1");
const firstRow = appearance("tbody tr");
let frames: number[] = [];

Object.assign(globalThis, {
  benchmark: {
    /** Returns the seconds until the page has its heading, and its last long task is over. */
    interactive: async () => {
      const shown = await heading;
      const end = () => Math.max(shown, ...longTasks.map(({ startTime, duration }) => startTime + duration));
      while (performance.now() - end() < QUIET) await new Promise((done) => setTimeout(done, 100));
      return end() / 1000;
    },
    /** Returns the milliseconds from the response of the list to the frame with its first rows. */
    firstRows: async () => {
      await firstRow;
      await new Promise((shown) => requestAnimationFrame(() => setTimeout(shown)));
      const [response] = performance.getEntriesByType("resource").filter(({ name }) => name.endsWith("/ListApiKeys"));
      return performance.now() - (response as PerformanceResourceTiming).responseEnd;
    },
    countFrames: () => {
      frames = [];
      let last = performance.now();
      const next = (time: number) => {
        frames.push(time - last);
        last = time;
        requestAnimationFrame(next);
      };
      requestAnimationFrame(next);
    },
    /** Returns how many frames were long since `countFrames`. */
    longFrames: () => frames.filter((time) => time > LONG).length,
    /** Jumps to places that are spread evenly over the page, and awaits a frame at each. */
    jump: async (count: number) => {
      for (let jump = 0; jump < count; jump++) {
        const place = (jump * 0.618) % 1;
        scrollTo(0, (document.documentElement.scrollHeight - innerHeight) * place);
        await new Promise((shown) => requestAnimationFrame(() => requestAnimationFrame(shown)));
      }
    },
  },
});

/** Returns when, in milliseconds since the page was requested, it has an element that matches a selector. */
function appearance(selector: string): Promise<number> {
  return new Promise((resolve) => {
    new MutationObserver((_, observer) => {
      if (document.querySelector(selector) === null) return;
      observer.disconnect();
      resolve(performance.now());
    }).observe(document, { childList: true, subtree: true });
  });
}

export {};
