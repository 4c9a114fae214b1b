import type { Browser } from "playwright-core";
import { watchPath } from "../../support/protocols/watch.ts";
import type { Check } from "../tap.ts";
import { collect } from "./checks.ts";
import type { Settings } from "./page/clients.ts";

/** Reads the beginning of the audit log with the browser's EventSource, to which the page's server or a proxy must add the token. */
export async function checkEvents(browser: Browser, { baseUrl, token }: Settings): Promise<Check[]> {
  const extraHTTPHeaders = { authorization: `Bearer ${token}` };
  const context = await browser.newContext({ ignoreHTTPSErrors: true, extraHTTPHeaders });
  try {
    const page = await context.newPage();
    return await collect(async (ok) => {
      await page.goto(`${baseUrl}/health/ready`);
      const read = await page.evaluate(readEvents, `${watchPath()}start_seq=0`);
      const events = read.map(({ data, id }) => ({ ...JSON.parse(data), id }));
      const isInOrder = events.every(({ audit_event, resume_token, id }, place) => {
        return audit_event.seq === String(place) && id === String(place + 1) && id === resume_token;
      });
      ok("EventSource: events in their order, with their tokens", isInOrder && events.length === 3, read);
    });
  } finally {
    await context.close();
  }
}

/** Runs in the page. */
function readEvents(path: string): Promise<{ readonly data: string; readonly id: string }[]> {
  return new Promise((resolve, reject) => {
    const events: { readonly data: string; readonly id: string }[] = [];
    const source = new EventSource(path);
    source.addEventListener("error", () => reject(new Error("the stream has failed")));
    source.addEventListener("message", ({ data, lastEventId }: MessageEvent) => {
      events.push({ data, id: lastEventId });
      if (events.length < 3) return;
      source.close();
      resolve(events);
    });
  });
}
