import type { Page, Request } from "playwright-core";

/** Whether text has a part of a secret that is long enough to be no accident. */
function contains(text: string, secret: string): boolean {
  const length = Math.min(secret.length, 16);
  for (let at = 0; at + length <= secret.length; at += 8) if (text.includes(secret.slice(at, at + length))) return true;
  return false;
}

/** Watches everything in which a page could keep a secret: memory, storage, addresses, history, messages and requests. */
export async function inspect(page: Page) {
  const session = await page.context().newCDPSession(page);
  const seen: string[] = [];
  page.on("request", (request: Request) => seen.push(request.url()));
  page.on("framenavigated", (frame) => seen.push(frame.url()));
  page.on("console", (message) => seen.push(message.text()));
  /** Returns a snapshot of what is reachable after a garbage collection. It has at most 1024 characters of a string. */
  const memory = async (): Promise<string> => {
    const chunks: string[] = [];
    const add = ({ chunk }: { chunk: string }) => chunks.push(chunk);
    session.on("HeapProfiler.addHeapSnapshotChunk", add);
    await session.send("HeapProfiler.collectGarbage");
    await session.send("HeapProfiler.takeHeapSnapshot", { reportProgress: false });
    session.off("HeapProfiler.addHeapSnapshotChunk", add);
    return chunks.join("");
  };
  const stored = () =>
    page.evaluate(async () => {
      // biome-ignore lint/suspicious/noExplicitAny: tests have no types of the DOM
      const { localStorage, sessionStorage, indexedDB, caches, document, history, location } = globalThis as any;
      const storages = [{ ...localStorage }, { ...sessionStorage }, await indexedDB.databases(), await caches.keys()];
      return JSON.stringify([storages, document.cookie, document.title, history.state, location.href]);
    });
  const places = async () => ({ memory: await memory(), storage: await stored(), seen: seen.join("\n") });
  const find = async (secrets: Readonly<Record<string, string>>): Promise<string[]> => {
    const texts = Object.entries(await places());
    return Object.entries(secrets).flatMap(([name, secret]) =>
      texts.flatMap(([place, text]) => (contains(text, secret) ? [`${name}: ${place}`] : [])),
    );
  };
  return { find };
}
