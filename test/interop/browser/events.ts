import type { Page } from "playwright-core";
import { watchPath } from "../../support/protocols/watch.ts";
import type { Check } from "../tap.ts";
import { collect } from "./checks.ts";
import type { Settings } from "./page/clients.ts";

/** Reads the beginning of the audit log with the browser's EventSource. The requests of the page must have the token. */
export function checkEvents(page: Page, { baseUrl }: Settings): Promise<Check[]> {
  return collect(async (ok) => {
    await page.goto(`${baseUrl}/health/ready`);
    const read = await page.evaluate(readEvents, `${watchPath()}start_seq=0`);
    const events = read.map(({ data, id }) => ({ ...JSON.parse(data), id }));
    const isInOrder = events.every(({ audit_event, resume_token, id }, place) => {
      return audit_event.seq === String(place) && id === String(place + 1) && id === resume_token;
    });
    ok("EventSource: events in their order, with their tokens", isInOrder && events.length === 3, read);
  });
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
