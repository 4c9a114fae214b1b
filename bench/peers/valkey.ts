/** A Fastify route with the usual cache of one's own: records in Valkey by the SHA-256 of their credential. They come from the file KEYS. */
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import Fastify from "fastify";
import { Redis } from "iovalkey";
import { listen, verdictSchema } from "../baseline/fastify.ts";
import type { KnownKey } from "../baseline/go/start.ts";

const valkey = new Redis({ path: process.env.SOCKET ?? "", enableAutoPipelining: true });
const nameOf = (credential: string) => hash("sha256", credential);

const lines = readFileSync(process.env.KEYS ?? "", "utf8").trim();
const records = lines.split("\n").map((line) => {
  const { credential, verdict }: KnownKey = JSON.parse(line);
  return [nameOf(credential), JSON.stringify(verdict)] as const;
});
await valkey.mset(new Map(records));

const fastify = Fastify();
fastify.post<{ Body: { credential: string } }>("/verify", { schema: verdictSchema }, async ({ body }) => {
  const record = await valkey.get(nameOf(body.credential));
  if (record === null) throw new Error("no such key");
  return JSON.parse(record);
});
await listen(fastify);
