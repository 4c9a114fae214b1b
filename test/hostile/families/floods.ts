import { once } from "node:events";
import { type IncomingMessage, Agent as PlainAgent, request as requestPlain } from "node:http";
import { request as requestTls, Agent as TlsAgent } from "node:https";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { issue, paths, type RestClient, restClient } from "../../support/rest.ts";
import type { Family } from "../case.ts";
import { isAllowed } from "../faults.ts";
import type { Target } from "../target.ts";

/** Concurrent calls of the flooding caller, each over its own connection. */
const CALLS = 60;

/** Milliseconds. */
const DURATION = 3_000;

/** Milliseconds in which the token of the flooding caller must be revoked. */
const LIMIT = 2_000;

type FloodCall = Parameters<RestClient>;

const times = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
const NO_CACHE = { "cache-control": "no-cache" };
const UNKNOWN_ID = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10";

/** Returns a call of the flooding caller; `own` is a key that exists, `unique` a number that is new in each call. */
type Flood = (own: { readonly keyId: string; readonly secret: string }, unique: number) => FloodCall;

const FLOODS: Readonly<Record<string, Flood>> = {
  "batches of cached verifications": ({ secret }) => batchOf(() => secret),
  "batches of unknown raw keys": (_, unique) => batchOf((index) => `unknown-${unique}-${index}`, NO_CACHE),
  "verifications without the cache": (_, unique) => verificationOf(`unknown-${unique}`, NO_CACHE),
  "largest pages": () => ["GET", `${paths.imported}?page_size=1000&filter=metadata.a%3Db`],
  "largest imports": (_, unique) => {
    const requests = times(1000, (i) => ({ raw_key: `flood-${unique}-${i}`, name: "flood", actor_id: "flood" }));
    return ["POST", `${paths.imported}:batchCreate`, { requests }];
  },
  creations: () => ["POST", paths.issued, { name: "flood", actor_id: "flood" }],
  "updates of one key": ({ keyId }, unique) => ["PATCH", `${paths.issued}/${keyId}`, { name: `flood ${unique}` }],
  derivations: ({ secret }) => {
    return ["POST", `${paths.keys}:derive`, { credential: secret, algorithm: "TOKEN_ALGORITHM_JWT", ttl: "60s" }];
  },
  "revocations of an unknown key": () => revocationOf(UNKNOWN_ID),
  "disablings of one key": ({ keyId }) => ["POST", `${paths.keys}/${keyId}:enable`, {}],
  "bulk revocations": () => {
    const body = { filter: 'actor_id="nobody"', reason: "REVOCATION_REASON_SUPERSEDED" };
    return ["POST", `${paths.keys}:bulkRevoke`, body];
  },
  "self-revocations by unknown raw keys": (_, unique) => {
    return ["POST", paths.selfRevoke, { credential: `unknown-${unique}`, reason: "REVOCATION_REASON_KEY_COMPROMISE" }];
  },
};

function verificationOf(credential: string, headers: Record<string, string>): FloodCall {
  return ["POST", `${paths.keys}:verify`, { credential }, headers];
}

function batchOf(credential: (index: number) => string, headers: Record<string, string> = {}): FloodCall {
  const requests = times(1000, (index) => ({ credential: credential(index) }));
  return ["POST", `${paths.keys}:batchVerify`, { requests }, headers];
}

function revocationOf(keyId: string): FloodCall {
  return ["POST", `${paths.keys}/${keyId}:revoke`, { reason: "REVOCATION_REASON_KEY_COMPROMISE" }];
}

/** Returns connections over HTTP/1.1 for one call each at a time; `fetch` would send all calls over one HTTP/2 connection with TLS. */
function connectionsTo({ url, tls }: Target, credentials: Record<string, string>) {
  const agent = new (tls ? TlsAgent : PlainAgent)({ keepAlive: true, maxSockets: CALLS });
  const request = tls ? requestTls : requestPlain;
  const call = async ([method, path, body, headers = {}]: FloodCall) => {
    const type = body === undefined ? {} : { "content-type": "application/json" };
    const sent = request(new URL(path, url), { agent, method, headers: { ...type, ...credentials, ...headers } });
    sent.end(body === undefined ? undefined : JSON.stringify(body));
    const [response]: IncomingMessage[] = await once(sent, "response");
    if (response === undefined) throw new Error("no response");
    return { status: response.statusCode, text: await text(response) };
  };
  return { call, close: () => agent.destroy() };
}

/**
 * Floods by one caller, at the end of which its token is revoked: by another caller, or with the token itself. Meanwhile the well-behaved
 * client verifies and revokes.
 */
export const floods: Family = {
  name: "floods",
  parallel: 1,
  weight: 2,
  generate(random) {
    const [kind, flood] = random.pick(Object.entries(FLOODS));
    const revokedBy = random.pick(["another caller", "itself"]);
    return {
      kind,
      // The ticks of a flood are those of many inputs.
      maxTick: Number.POSITIVE_INFINITY,
      description: () => `${kind}, revoked by ${revokedBy}`,
      async run(target) {
        const operator = target.operator;
        const own = await issue(operator, { name: "flood", scopes: ["keyhold:admin"], ttl: "1h" });
        const credentials: Record<string, string> =
          target.token === undefined ? {} : { authorization: `Bearer ${own.secret}` };
        const connections = connectionsTo(target, credentials);
        const problems: string[] = [];
        let isOver = false;
        const clients = times(CALLS, async () => {
          while (!isOver) {
            // The server closes the connection of a request that it rejects before its body.
            const answer = await connections.call(flood(own, unique++)).catch(() => undefined);
            if (!isAllowed(answer?.status ?? 0)) problems.push(`answered ${answer?.status}: ${answer?.text}`);
          }
        });
        await sleep(DURATION);
        const start = performance.now();
        const before = performance.eventLoopUtilization();
        const revoking = revokedBy === "itself" ? restClient(target, credentials) : operator;
        const { status, text } = await revoking(...revocationOf(own.keyId));
        // Without the time in which this process generated inputs.
        const duration = Math.round(performance.now() - start - performance.eventLoopUtilization(before).active);
        if (status !== 200) problems.push(`revoking the token by ${revokedBy} answered ${status}: ${text}`);
        if (duration > LIMIT) problems.push(`revoking the token by ${revokedBy} took ${duration} ms`);
        isOver = true;
        await Promise.all(clients);
        connections.close();
        return problems;
      },
    };
  },
};

let unique = Date.now();
