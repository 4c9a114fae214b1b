/**
 * A Fastify route with the usual rate limit of one's own: a script in Valkey for each request, GCRA as in redis-cell. The record of the key is in
 * memory: the script is the only hop.
 */
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import Fastify from "fastify";
import { Redis } from "iovalkey";
import { listen, verdictSchema } from "../baseline/fastify.ts";
import type { KnownKey } from "../baseline/go/start.ts";

/** Arguments: the interval of one token and the tolerance of the burst, in microseconds. Returns the microseconds to wait; 0: admitted. */
const GCRA = `
  local time = redis.call("TIME")
  local now = time[1] * 1000000 + time[2]
  local arrival = math.max(now, tonumber(redis.call("GET", KEYS[1]) or now)) + tonumber(ARGV[1])
  if arrival - now > tonumber(ARGV[2]) then return arrival - now - tonumber(ARGV[2]) end
  redis.call("SET", KEYS[1], arrival, "PX", math.ceil((arrival - now) / 1000))
  return 0`;

const valkey = new Redis({ path: process.env.SOCKET ?? "", enableAutoPipelining: true });
valkey.defineCommand("gcra", { numberOfKeys: 1, lua: GCRA });
const { gcra } = valkey as unknown as { gcra: (key: string, interval: number, tolerance: number) => Promise<number> };

const QUOTA = Number(process.env.QUOTA);
const interval = 60_000_000 / QUOTA;

const nameOf = (credential: string) => hash("sha256", credential);
const lines = readFileSync(process.env.KEYS ?? "", "utf8").trim();
const records = new Map(
  lines.split("\n").map((line) => {
    const { credential, verdict }: KnownKey = JSON.parse(line);
    return [nameOf(credential), verdict] as const;
  }),
);

const fastify = Fastify();
fastify.post<{ Body: { credential: string } }>("/verify", { schema: verdictSchema }, async ({ body }) => {
  const name = nameOf(body.credential);
  const verdict = records.get(name);
  if (verdict === undefined) throw new Error("no such key");
  const wait = await gcra.call(valkey, name, interval, 60_000_000);
  return wait === 0 ? verdict : { is_valid: false };
});
await listen(fastify);
