import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { type Fixture, once } from "../harness/fixture.ts";
import { residentMemory } from "../harness/memory.ts";
import type { Scenario } from "../harness/scenario.ts";
import { JSON_HEADERS } from "../load/http-load.ts";
import { percentile, wrk } from "../load/wrk.ts";
import { PATHS, post } from "../subject/client.ts";
import { KEY } from "../subject/fill.ts";
import { verifyBodies, warmService } from "./warm-service.ts";

/** Clients that send wrong credentials. Together they ask for several times the hashes that the server can compute. */
const ATTACKERS = 200;

/** Milliseconds between two requests of an attacker. */
const PAUSE = 1_000;

/** Connections of the verifications that are measured. */
const CONNECTIONS = 8;

/** The most expensive hashes that can be imported. Their outputs belong to no raw key. */
const HASHES = [
  { prefix: "argon2-", phc: `$argon2id$v=19$m=65536,t=4,p=4$${randomText(16)}$${randomText(32)}` },
  { prefix: "bcrypt-", phc: "$2b$12$t.bnMwzXCVHGT1SCxP.Q3upk0M7B.Wm81MlA2uAI.088vtzRYAJhu" },
];

function randomText(bytes: number): string {
  return randomBytes(bytes).toString("base64").replaceAll("=", "");
}

/** The service with keys of which only slow hashes are known. */
const floodable = once(async (fixture: Fixture) => {
  const service = await warmService(fixture);
  for (const { prefix, phc } of HASHES) {
    await post(service.url + PATHS.imported, { ...KEY, raw_key_hash: { phc }, lookup_prefix: prefix });
  }
  return service;
});

/** Sends wrong credentials until the signal. Resolves to how many were refused without being computed. */
async function flood(url: string, signal: AbortSignal): Promise<Flooded> {
  const flooded = { answered: 0, refused: 0 };
  const attack = async (index: number) => {
    await sleep((PAUSE * index) / ATTACKERS);
    const { prefix } = HASHES[index % HASHES.length] ?? { prefix: "" };
    while (!signal.aborted) {
      const credential = prefix + randomBytes(16).toString("hex");
      const next = sleep(PAUSE);
      const response = await fetch(url + PATHS.verify, {
        method: "POST",
        headers: JSON_HEADERS,
        body: JSON.stringify({ credential }),
      });
      await response.arrayBuffer();
      if (response.status === 200) flooded.answered++;
      else if (response.status === 503 || response.status === 429) flooded.refused++;
      else throw new Error(`a wrong credential was answered with ${response.status}`);
      await next;
    }
  };
  await Promise.all(Array.from({ length: ATTACKERS }, (_, index) => attack(index)));
  return flooded;
}

interface Flooded {
  /** Responses with a verdict, and responses that the server is overloaded. */
  answered: number;
  refused: number;
}

/** Returns the p99 of other verifications in milliseconds. */
async function verifyTime(fixture: Fixture): Promise<number> {
  const { url } = await floodable(fixture);
  const bodies = await verifyBodies(fixture);
  const load = { url: url + PATHS.verify, headers: JSON_HEADERS, bodies, connections: CONNECTIONS };
  return percentile("p99")(await wrk(fixture, load));
}

/** Runs work during a flood. Rejects unless a part of the flood was computed and a part was refused. */
async function inFlood(fixture: Fixture, work: () => Promise<number>): Promise<number> {
  const { url } = await floodable(fixture);
  const end = new AbortController();
  const flooding = flood(url, end.signal);
  await sleep(2 * PAUSE);
  const figure = await work().finally(() => end.abort());
  const { answered, refused } = await flooding;
  if (refused === 0 || answered === 0) throw new Error(`${answered} of the flood were answered, ${refused} refused`);
  return figure;
}

/** Seconds of the flood whose memory is measured. */
const SECONDS = 30;

/** Returns the maximum resident memory of a process in MB. */
async function largestMemory(pid: number): Promise<number> {
  let largest = 0;
  for (let second = 0; second < SECONDS; second++) {
    await sleep(1000);
    largest = Math.max(largest, await residentMemory(pid));
  }
  return largest;
}

const shared = { group: "hash-flood", needs: ["wrk"] } as const;
const FLOOD = `${ATTACKERS} clients send wrong raw keys with the prefixes of Argon2 (64 MiB) and bcrypt (cost 12) hashes`;

/** A flood of wrong credentials for keys of which only a slow hash is known. */
export const hashFloodScenarios: readonly Scenario[] = [
  {
    ...shared,
    name: "hash-flood-memory",
    work: `memory of the server while ${FLOOD}, ${SECONDS} s`,
    against: "the same before",
    unit: "MB",
    judged: "difference",
    rounds: 1,
    long: SECONDS,
    prepare: async (fixture) => {
      const { pid } = (await floodable(fixture)).installation.server;
      const before = await residentMemory(pid);
      return { subject: () => inFlood(fixture, () => largestMemory(pid)), baseline: async () => before };
    },
  },
  {
    ...shared,
    name: "hash-flood-p99",
    work: `p99 of verify, cached, by ${CONNECTIONS} connections, while ${FLOOD}`,
    against: "the same without",
    unit: "ms",
    judged: "ratio",
    prepare: async (fixture) => ({
      subject: () => inFlood(fixture, () => verifyTime(fixture)),
      baseline: () => verifyTime(fixture),
    }),
  },
];
