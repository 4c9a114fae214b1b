import { once as event } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { watchPath } from "../../test/support/protocols/watch.ts";
import { type Fixture, once } from "../harness/fixture.ts";
import type { Scenario } from "../harness/scenario.ts";
import { PATHS, patch, post } from "../subject/client.ts";
import { KEY } from "../subject/fill.ts";
import { install } from "../subject/installation.ts";
import { settledMemory } from "./memory.ts";

const WATCHERS = 1_000;

/** A server whose audit log is watched, with its memory before. */
const watched = once(async (fixture: Fixture) => {
  const { server } = await install(fixture);
  const idle = await settledMemory(server);
  let onEvent = () => {};
  for (let opened = 0; opened < WATCHERS; opened++) await openStream(fixture, server.url, () => onEvent());
  const { key_id } = (await post(server.url + PATHS.issued, KEY)).issued_api_key;
  let changes = 0;
  /** Returns the milliseconds from the request of a change until the last watcher has its event. */
  const change = async (): Promise<number> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    let missing = WATCHERS;
    onEvent = () => {
      if (--missing === 0) resolve();
    };
    const began = performance.now();
    await patch(`${server.url}${PATHS.issued}/${key_id}`, { name: `name ${changes++}` });
    await promise;
    return performance.now() - began;
  };
  return { server, idle, change };
});

/** Opens a stream of Server-Sent Events, which begins with the next event. */
async function openStream(fixture: Fixture, url: string, onEvent: () => void): Promise<void> {
  const outgoing = request(new URL(watchPath(), url), { agent: false }).end();
  const [response]: IncomingMessage[] = await event(outgoing, "response");
  if (response?.statusCode !== 200) throw new Error("the stream was refused");
  fixture.onClose(async () => void response.destroy());
  response.on("error", () => {});
  response.on("data", (chunk: Buffer) => {
    if (chunk.includes("data: ")) onEvent();
  });
}

const shared = { group: "watchers", work: `${WATCHERS.toLocaleString("en-GB")} watchers of the audit log` } as const;

/** What streams of the audit log cost. */
export const watcherScenarios: readonly Scenario[] = [
  {
    ...shared,
    name: "watchers-memory",
    against: "the same server without",
    unit: "MB",
    judged: "difference",
    rounds: 1,
    prepare: async (fixture) => {
      const { server, idle } = await watched(fixture);
      return { subject: () => settledMemory(server), baseline: async () => idle };
    },
  },
  {
    ...shared,
    name: "watchers-event",
    work: `an update until each of ${WATCHERS.toLocaleString("en-GB")} watchers has its event`,
    against: "absolute; changes are gathered for 100 ms",
    unit: "ms",
    judged: "value",
    prepare: async (fixture) => ({ subject: (await watched(fixture)).change, baseline: null }),
  },
];
