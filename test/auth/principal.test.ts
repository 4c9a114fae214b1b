import { randomUUID } from "node:crypto";
import type { DescMethodUnary } from "@bufbuild/protobuf";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { SelfServiceService } from "../../gen/keyhold/v2alpha1/self_service_pb.js";
import type { Principal } from "../../src/domain/principal.ts";
import type { KeyStore } from "../../src/keys/ports.ts";
import { toConfig } from "../../src/server/config/config.ts";
import { openResources } from "../../src/server/resources.ts";
import { type Service, serve } from "../../src/server/service.ts";
import { bearer } from "../support/guarded.ts";
import { type OidcIssuer, startOidcIssuer } from "../support/oidc-issuer.ts";
import { createTestDatabase } from "../support/postgres.ts";
import type { Protocol } from "../support/protocols/call.ts";
import { openProtocols } from "../support/protocols/protocols.ts";
import { issue, restClient } from "../support/rest.ts";
import { ROOT_SECRET } from "../support/server.ts";

const { revokeApiKey } = ApiKeysService.method;
const { selfRevokeApiKey } = SelfServiceService.method;

const USER_AGENT = "principal-test/1.0";
const EXPIRY = new Date("2099-01-01T00:00:00Z");

let service: Service;
let oidc: OidcIssuer;
let protocols: Protocol[];
let dropDatabase: () => Promise<void>;
/** The principals that the verbs have passed to the store, oldest first. */
const seen: Principal[] = [];

beforeAll(async () => {
  const database = await createTestDatabase();
  dropDatabase = database.drop;
  oidc = await startOidcIssuer();
  const config = toConfig({
    ...{ KEYHOLD_PORT: "0", KEYHOLD_METRICS_PORT: "off", KEYHOLD_DATABASE_URL: database.url },
    ...{ KEYHOLD_ROOT_SECRET: ROOT_SECRET, KEYHOLD_AUTH: "none,admin-token,oidc" },
    ...{ KEYHOLD_OIDC_ISSUER: oidc.issuer, KEYHOLD_OIDC_AUDIENCE: oidc.audience },
  });
  const resources = await openResources(config, { log: () => {}, ifRunning: "reject" });
  const { store } = resources.keys;
  const change: KeyStore["change"] = (name, mutation, principal, now) => {
    seen.push(principal);
    return store.change(name, mutation, principal, now);
  };
  const keys = { ...resources.keys, store: { ...store, change } };
  service = await serve(config, { ...resources, keys }, pino({ level: "silent" }), {});
  protocols = openProtocols({ url: service.url, address: new URL(service.url).host });
});

afterAll(async () => {
  for (const protocol of protocols) protocol.close();
  await service.close();
  await oidc.close();
  await dropDatabase();
});

/** Makes the call over every protocol; yields each one's name, and the principal that reached the store. */
async function* principalsOf(
  method: DescMethodUnary,
  request: () => Promise<Record<string, unknown>>,
  headers: Record<string, string>,
) {
  for (const { name, call } of protocols) {
    const id = randomUUID();
    seen.length = 0;
    const reply = await call(method, await request(), { ...headers, "user-agent": USER_AGENT, "x-request-id": id });
    expect(reply.headers.get("x-request-id"), name).toBe(id);
    const [principal, ...others] = seen;
    expect(others, name).toEqual([]);
    yield { name, principal, id };
  }
}

/** grpc-js sends its own name alone. */
function callFacts(name: string, callId: string) {
  return {
    clientAddress: "127.0.0.1",
    userAgent: name === "gRPC" ? expect.stringMatching(/^grpc-node-js/) : USER_AGENT,
    callId,
  };
}

function fieldsOf(principal: Principal | undefined) {
  if (principal === undefined) return undefined;
  const { subject, method, keyId, scopes, restrictions, expireTime, clientAddress, userAgent, callId } = principal;
  return { subject, method, keyId, scopes, restrictions, expireTime, clientAddress, userAgent, callId };
}

const UNRESTRICTED = { actorIds: null };

interface Case {
  readonly title: string;
  /** Returns the caller's headers and what its principal must be. */
  prepare(): Promise<{ headers: Record<string, string>; identity: object }>;
}

const CASES: readonly Case[] = [
  {
    title: "an admin token",
    async prepare() {
      const scopes = ["keyhold:keys.write", "read"];
      const { secret, keyId } = await issue(restClient(service), { scopes, ttl: "1h" });
      const expireTime = expect.any(Date);
      return {
        headers: bearer(secret),
        identity: { method: "admin-token", subject: keyId, keyId, scopes, expireTime },
      };
    },
  },
  {
    title: "an access token of the OIDC issuer",
    async prepare() {
      const [exp, scopes] = [EXPIRY.getTime() / 1000, ["keyhold:admin", "openid"]];
      const { issuer: iss, audience: aud } = oidc;
      const token = await oidc.sign({ iss, aud, sub: "alice", exp, scope: scopes.join(" ") });
      return { headers: bearer(token), identity: { method: "oidc", subject: "alice", scopes, expireTime: EXPIRY } };
    },
  },
  {
    title: "no credential",
    prepare: async () => ({
      headers: {},
      identity: { method: "none", subject: "anonymous", scopes: ["keyhold:admin"] },
    }),
  },
];

describe("the principal that reaches a verb, over every protocol", () => {
  test.each(CASES)("by $title", async ({ prepare }) => {
    const { headers, identity } = await prepare();
    const request = async () => ({ keyId: (await issue(restClient(service))).keyId });
    for await (const { name, principal, id } of principalsOf(revokeApiKey, request, headers)) {
      const expected = {
        keyId: undefined,
        expireTime: undefined,
        ...identity,
        restrictions: UNRESTRICTED,
        ...callFacts(name, id),
      };
      expect(fieldsOf(principal), name).toEqual(expected);
    }
    expect(protocols.length).toBeGreaterThan(3);
  });

  test("by the secret of the key that it revokes itself, whatever else the caller may do", async () => {
    let keyId = "";
    const scopes = ["keyhold:verify"];
    const request = async () => {
      const issued = await issue(restClient(service), { scopes });
      keyId = issued.keyId;
      return { credential: issued.secret };
    };
    for await (const { name, principal, id } of principalsOf(selfRevokeApiKey, request, {})) {
      const identity = {
        method: "secret",
        subject: keyId,
        keyId,
        scopes,
        expireTime: undefined,
        restrictions: UNRESTRICTED,
      };
      expect(fieldsOf(principal), name).toEqual({ ...identity, ...callFacts(name, id) });
    }
  });
});
