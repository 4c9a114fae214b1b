import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { freePort } from "../support/free-port.ts";
import { runKeyhold, type Serving, serve } from "../support/keyhold.ts";
import { createTestDatabase } from "../support/postgres.ts";
import { issue, paths, type RestClient, restClient } from "../support/rest.ts";
import { ROOT_SECRET } from "../support/server.ts";
import { CLIENT } from "./client.ts";

/** Two Keyhold servers with a database, and a client that may change keys. */
export interface Servers {
  /** `host:port` of both. They keep their ports when they are restarted. */
  readonly addresses: readonly [string, string];
  /** The token of gateways, which may only verify. */
  readonly token: string;
  issue(fields?: Record<string, unknown>): Promise<{ readonly secret: string; readonly keyId: string }>;
  revoke(keyId: string): Promise<void>;
  /** Returns a token of a credential, for an audience. */
  derive(credential: string, audience: string): Promise<string>;
  /** Ends one server as a rolling restart does, and starts it again. */
  restart(place: 0 | 1): Promise<void>;
  stop(): Promise<void>;
  start(): Promise<void>;
  /** Stops processes, by default both, which keep their ports and connections and answer nothing; or continues them. */
  freeze(isFrozen: boolean, places?: readonly (0 | 1)[]): void;
  close(): Promise<void>;
}

/** The proxies of the tests; clients have other addresses. */
const PROXIES = "127.0.0.1/32";

export async function startServers(gateways: string, more: Record<string, string> = {}): Promise<Servers> {
  const database = await createTestDatabase();
  const environment = {
    KEYHOLD_AUTH: "admin-token",
    ...(gateways === "" ? {} : { KEYHOLD_GATEWAYS: gateways }),
    KEYHOLD_TRUSTED_PROXIES: PROXIES,
    KEYHOLD_DATABASE_URL: database.url,
    KEYHOLD_ROOT_SECRET: ROOT_SECRET,
    ...more,
  };
  const ports = [await freePort(), await freePort()] as const;
  const addresses = [`127.0.0.1:${ports[0]}`, `127.0.0.1:${ports[1]}`] as const;
  const running: (Serving | undefined)[] = [];
  const begin = async (place: number) => {
    running[place] = await serve({ ...environment, KEYHOLD_PORT: String(ports[place]) });
  };
  const end = async (place: number) => {
    const server = running[place];
    running[place] = undefined;
    server?.kill("SIGTERM");
    if (server !== undefined) expect(await server.ended).toMatchObject({ code: 0 });
  };
  const both = async (act: (place: number) => Promise<void>) => void (await Promise.all([act(0), act(1)]));
  await both(begin);
  const admin: RestClient = restClient(
    { url: `http://${addresses[0]}` },
    { authorization: `Bearer ${await tokenOf("administrator", "keyhold:admin", environment)}` },
  );
  return {
    addresses,
    token: await tokenOf("gateway", "keyhold:verify", environment),
    issue: (fields = {}) => issue(admin, { scopes: ["read"], ...fields }),
    revoke: async (keyId) => {
      expect(await admin("POST", `${paths.keys}/${keyId}:revoke`, {})).toMatchObject({ status: 200 });
    },
    derive: async (credential, audience) => {
      const fields = { credential, audience: [audience], algorithm: "TOKEN_ALGORITHM_JWT" };
      return (await admin("POST", `${paths.keys}:derive`, fields)).body.token.token;
    },
    restart: async (place) => {
      await end(place);
      await begin(place);
    },
    stop: () => both(end),
    start: () => both(begin),
    freeze: (isFrozen, places = [0, 1]) => {
      for (const place of places) running[place]?.kill(isFrozen ? "SIGSTOP" : "SIGCONT");
    },
    close: async () => {
      for (const server of running) server?.kill("SIGKILL");
      await Promise.all(running.map((server) => server?.ended));
      await database.drop();
    },
  };
}

async function tokenOf(name: string, scope: string, environment: Record<string, string>): Promise<string> {
  const args = ["admin", "token", "create", "--name", name, "--scope", scope];
  const { stdout, code, stderr } = await runKeyhold(args, environment);
  if (code !== 0) throw new Error(`no token: ${stderr}`);
  return stdout.trim();
}

/** The keys of the situations. */
export interface Keys {
  readonly valid: string;
  readonly keyId: string;
  readonly other: string;
  readonly unknown: string;
  readonly revoked: string;
  readonly expired: string;
  readonly withoutScope: string;
  /** A token for the audience `billing`. */
  readonly billing: string;
  /** Only for requests from the address `CLIENT`. */
  readonly restricted: string;
}

export const ACTOR = "team_42";

/** Makes the keys, with one that the servers do not know. */
export async function makeKeys(
  { issue, revoke, derive }: Pick<Servers, "issue" | "revoke" | "derive">,
  unknown: string | Promise<string> = issuedElsewhere(),
): Promise<Keys> {
  const valid = await issue({ actor_id: ACTOR, scopes: ["read", "write"] });
  const [other, revoked, expired, withoutScope, restricted] = await Promise.all([
    issue(),
    issue(),
    issue({ ttl: "1s" }),
    issue({ scopes: ["write", "readx", "x.read"] }),
    issue({ ip_restriction: { allowed_cidrs: [`${CLIENT}/32`] } }),
  ]);
  await revoke(revoked.keyId);
  await sleep(1_000);
  return {
    valid: valid.secret,
    keyId: valid.keyId,
    other: other.secret,
    unknown: await unknown,
    revoked: revoked.secret,
    expired: expired.secret,
    withoutScope: withoutScope.secret,
    billing: await derive(valid.secret, "billing"),
    restricted: restricted.secret,
  };
}

/** Returns a well-formed key with a valid checksum, of a server that is gone. */
async function issuedElsewhere(): Promise<string> {
  const elsewhere = await startServers("");
  return (await elsewhere.issue().finally(() => elsewhere.close())).secret;
}
