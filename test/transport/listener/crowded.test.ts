import { expect, onTestFinished, test } from "vitest";
import { greet, http2Client, http2Request, listen, rawClient, until } from "./support.ts";

/** More requests than one tick begins, and no more streams in each of `SESSIONS` than are permitted. */
const REQUESTS = 400;
const SESSIONS = 5;

/** A listener that counts its calls in each tick of the event loop. */
function countingTicks() {
  const counts: number[] = [0];
  let timer: NodeJS.Immediate;
  const tick = () => {
    if (counts.at(-1) !== 0) counts.push(0);
    timer = setImmediate(tick);
  };
  tick();
  onTestFinished(() => clearImmediate(timer));
  const begun = () => counts.reduce((total, count) => total + count, 0);
  const listener: typeof greet = (request, response) => {
    counts[counts.length - 1] = (counts.at(-1) ?? 0) + 1;
    greet(request, response);
  };
  return { counts, begun, listener };
}

interface Clients {
  /** Sends all requests. */
  send(): void;
  leave(): void;
}

const PROTOCOLS: Readonly<Record<string, (port: Awaited<ReturnType<typeof listen>>) => Promise<Clients>>> = {
  "HTTP/1.1": async ({ server }) => {
    const clients = await Array.fromAsync({ length: REQUESTS }, () => rawClient(server));
    return {
      send() {
        for (const { socket } of clients) socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      },
      leave() {
        for (const { socket } of clients) socket.destroy();
      },
    };
  },
  "HTTP/2": async ({ number }) => {
    const sessions = Array.from({ length: SESSIONS }, () => http2Client(number));
    for (const session of sessions) await http2Request(session, { ":path": "/" });
    return {
      send() {
        for (let sent = 0; sent < REQUESTS; sent++)
          sessions[sent % SESSIONS]
            ?.request({ ":path": "/" })
            .resume()
            .on("error", () => {});
      },
      leave() {
        for (const session of sessions) session.destroy();
      },
    };
  },
};

for (const [protocol, open] of Object.entries(PROTOCOLS)) {
  test(`one tick begins at most 128 of the requests that arrive at once over ${protocol}, and the next ones the others`, async () => {
    const { counts, begun, listener } = countingTicks();
    const port = await listen(listener);
    const clients = await open(port);
    const before = begun();
    clients.send();
    await until(() => begun() === before + REQUESTS);
    expect(Math.max(...counts)).toBeLessThanOrEqual(128);
  });

  test(`clients over ${protocol} that leave before their requests begin harm no others`, async () => {
    const { begun, listener } = countingTicks();
    const port = await listen(listener);
    const clients = await open(port);
    const before = begun();
    clients.send();
    await until(() => begun() > before);
    clients.leave();
    const { body } = await http2Request(http2Client(port.number), { ":path": "/" });
    expect(body.toString()).toBe("2.0 GET 127.0.0.1");
  });
}
