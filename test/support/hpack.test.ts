import { once } from "node:events";
import { createServer } from "node:http2";
import { type AddressInfo, connect as connectTcp } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { HpackDecoder } from "./hpack.ts";
import { Flag, Frame, frame, frames, headerBlock, PREFACE } from "./http2-wire.ts";

test("reads what it writes, and the examples of RFC 7541, appendix C", () => {
  const fields = [
    [":method", "GET"],
    ["custom-key", "custom-value"],
    ["long", "a".repeat(1_000)],
  ] as const;
  expect(new HpackDecoder().decode(headerBlock(fields))).toEqual(fields);
  const decoder = new HpackDecoder();
  const hex = (text: string) => Buffer.from(text.replaceAll(" ", ""), "hex");
  const first = [
    [":method", "GET"],
    [":scheme", "http"],
    [":path", "/"],
    [":authority", "www.example.com"],
  ];
  expect(decoder.decode(hex("8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff"))).toEqual(first);
  expect(decoder.decode(hex("8286 84be 5886 a8eb 1064 9cbf"))).toEqual([...first, ["cache-control", "no-cache"]]);
});

test("reads what Node's encoder writes, and Node reads what ours writes", async () => {
  const odd = Array.from({ length: 95 }, (_, place) => String.fromCharCode(0x20 + place))
    .join("")
    .trim();
  const server = createServer((request, response) => {
    response.writeHead(503, { "x-odd": String(request.headers["x-odd"]), "x-path": request.url });
    response.end();
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const socket = connectTcp(port, "127.0.0.1");
  onTestFinished(() => void socket.destroy());
  const block = headerBlock([
    [":method", "GET"],
    [":scheme", "http"],
    [":path", "/a"],
    [":authority", "localhost"],
    ["x-odd", odd],
  ]);
  const request = (stream: number) => frame(Frame.HEADERS, Flag.END_HEADERS | Flag.END_STREAM, stream, block);
  socket.write(Buffer.concat([PREFACE, frame(Frame.SETTINGS, 0, 0), request(1), request(3)]));
  let received = Buffer.alloc(0);
  const answers = () => frames(received).filter(({ type }) => type === Frame.HEADERS);
  while (answers().length < 2) received = Buffer.concat([received, (await once(socket, "data"))[0]]);
  const decoder = new HpackDecoder();
  for (const { payload } of answers()) {
    const fields = Object.fromEntries(decoder.decode(payload));
    expect(fields).toMatchObject({ ":status": "503", "x-odd": odd, "x-path": "/a" });
  }
});
