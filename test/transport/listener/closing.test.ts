import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { destroyAfter, linger } from "../../../src/transport/listener/closing.ts";
import { listenLocally } from "../../support/listen.ts";

let client: Socket;
let socket: Socket;

/** Connects two sockets. The timers of the test are set by hand. */
beforeEach(async () => {
  const server = createServer({ allowHalfOpen: true });
  client = connect({ port: await listenLocally(server), host: "127.0.0.1", allowHalfOpen: true });
  [socket] = await once(server, "connection");
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => {
    vi.useRealTimers();
    client.destroy();
    socket.destroy();
    server.close();
  });
});

test("a socket is destroyed after the time, not before", () => {
  destroyAfter(socket, 1_000);
  vi.advanceTimersByTime(999);
  expect(socket.destroyed).toBe(false);
  vi.advanceTimersByTime(1);
  expect(socket.destroyed).toBe(true);
});

test("a socket that is closed leaves no timer", async () => {
  destroyAfter(socket, 1_000);
  socket.destroy();
  await once(socket, "close");
  expect(vi.getTimerCount()).toBe(0);
});

test("a client that stays after the end is read until its time is over", async () => {
  socket.end();
  linger(socket);
  await once(client.resume(), "end");
  client.write("more");
  await once(socket, "data");
  vi.advanceTimersByTime(4_999);
  expect(socket.destroyed).toBe(false);
  vi.advanceTimersByTime(1);
  expect(socket.destroyed).toBe(true);
});

test("a client that closes its side ends the wait", async () => {
  socket.end();
  linger(socket);
  client.end();
  await once(socket, "close");
  expect(vi.getTimerCount()).toBe(0);
});
