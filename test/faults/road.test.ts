import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { seeded } from "../support/seeded.ts";
import { Road } from "./road.ts";

let server: Server;
let road: Road;
let client: Socket;
let accepted: Socket;

beforeEach(async () => {
  server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  road = await Road.start((server.address() as AddressInfo).port, seeded(1));
  client = connect(road.port, "127.0.0.1");
  [accepted] = await once(server, "connection");
});

afterEach(() => {
  client.destroy();
  accepted.destroy();
  road.close();
  server.close();
});

async function received(count: number): Promise<string> {
  let text = "";
  while (text.length < count) text += String((await once(accepted, "data"))[0]);
  return text;
}

test("bytes keep their order however long each is held", async () => {
  road.jitter = 5;
  const digits = Array.from({ length: 50 }, (_, n) => String(n % 10)).join("");
  const all = received(50);
  for (const digit of digits) {
    client.write(digit);
    await new Promise(setImmediate);
  }
  expect(await all).toBe(digits);
});

test("what is sent while a node is cut off arrives later, though its sender has gone", async () => {
  client.write("before ");
  expect(await received(7)).toBe("before ");
  road.cutOff();
  client.end("late");
  await once(client, "finish");
  const late = received(4);
  road.restore("deliver");
  expect(await late).toBe("late");
});

test("one connection is reset by the port that the server sees", async () => {
  const port = accepted.remotePort ?? 0;
  const closed = new Promise((resolve) => client.once("close", resolve));
  accepted.on("error", () => {});
  client.on("error", () => {});
  expect([road.resetOne(1), road.resetOne(port)]).toEqual([false, true]);
  await closed;
});
