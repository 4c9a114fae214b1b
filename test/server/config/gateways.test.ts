import { describe, expect, test } from "vitest";
import { toConfig } from "../../../src/server/config/config.ts";
import type { Environment } from "../../../src/server/config/values.ts";
import { table } from "../../support/conformance.ts";

const ON = { KEYHOLD_GATEWAYS: "forward-auth" };
const TLS = { KEYHOLD_TLS_CERT_FILE: "/a.pem", KEYHOLD_TLS_KEY_FILE: "/b.pem" };

const GOOD = table<readonly [Environment, object]>([
  [{}, { protocols: [], callers: ["token"], networks: [], clientCaFile: null, address: null }],
  [ON, { protocols: ["forward-auth"] }],
  [{ KEYHOLD_GATEWAYS: " ext-authz,forward-auth, ext-authz" }, { protocols: ["ext-authz", "forward-auth"] }],
  [
    {
      ...ON,
      KEYHOLD_GATEWAY_CALLERS: "token, network",
      KEYHOLD_GATEWAY_NETWORKS: "10.0.0.0/8,192.0.2.7, ::ffff:10.1.0.0/112, 2001:DB8::/32",
    },
    { callers: ["token", "network"], networks: ["10.0.0.0/8", "192.0.2.7/32", "10.1.0.0/16", "2001:db8::/32"] },
  ],
  [
    { ...ON, ...TLS, KEYHOLD_GATEWAY_CALLERS: "mtls", KEYHOLD_GATEWAY_CLIENT_CA_FILE: "/ca.pem" },
    { callers: ["mtls"], clientCaFile: "/ca.pem" },
  ],
  [{ ...ON, KEYHOLD_GATEWAY_PORT: "4425" }, { address: { host: "127.0.0.1", port: 4425 } }],
  [
    { ...ON, KEYHOLD_AUTH: "admin-token", KEYHOLD_GATEWAY_PORT: "0", KEYHOLD_GATEWAY_HOST: "10.0.0.1" },
    { address: { host: "10.0.0.1", port: 0 } },
  ],
  [
    { ...ON, KEYHOLD_GATEWAY_CREDENTIALS: "cookie:__Host-Key, header:X-Token,query:api_key,bearer" },
    {
      credentials: [
        { kind: "cookie", name: "__Host-Key" },
        { kind: "header", name: "x-token" },
        { kind: "query", name: "api_key" },
        { kind: "bearer" },
      ],
    },
  ],
  [{ ...ON, KEYHOLD_GATEWAY_METADATA: "plan_id, Team.Name" }, { metadata: ["plan_id", "Team.Name"] }],
]);

describe("an environment configures", () => {
  test.each(GOOD)("%j", (environment, expected) => {
    expect(toConfig(environment).gateways).toMatchObject(expected);
  });
});

const BAD = table<readonly [string, Environment]>([
  ...["forward_auth", "all", "on", "true"].map((name) => ["KEYHOLD_GATEWAYS", { KEYHOLD_GATEWAYS: name }] as const),
  ...["none", "tokens", "token;network"].map(
    (name) => ["KEYHOLD_GATEWAY_CALLERS", { ...ON, KEYHOLD_GATEWAY_CALLERS: name }] as const,
  ),
  // A method without what it needs, and what no method needs.
  ["KEYHOLD_GATEWAY_NETWORKS", { ...ON, KEYHOLD_GATEWAY_CALLERS: "network" }],
  ["KEYHOLD_GATEWAY_NETWORKS", { ...ON, KEYHOLD_GATEWAY_NETWORKS: "10.0.0.0/8" }],
  ["KEYHOLD_GATEWAY_CLIENT_CA_FILE", { ...ON, ...TLS, KEYHOLD_GATEWAY_CALLERS: "mtls" }],
  ["KEYHOLD_GATEWAY_CLIENT_CA_FILE", { ...ON, ...TLS, KEYHOLD_GATEWAY_CLIENT_CA_FILE: "/ca.pem" }],
  [
    "KEYHOLD_GATEWAY_CLIENT_CA_FILE",
    { ...ON, KEYHOLD_GATEWAY_CALLERS: "mtls", KEYHOLD_GATEWAY_CLIENT_CA_FILE: "/ca.pem" },
  ],
  ...["0.0.0.0/0", "::/0", "::ffff:0:0/96", "localhost", "10.0.0.1/8", "10.0.0.0/33", "fe80::1%eth0", "*"].map(
    (network) =>
      [
        "KEYHOLD_GATEWAY_NETWORKS",
        { ...ON, KEYHOLD_GATEWAY_CALLERS: "network", KEYHOLD_GATEWAY_NETWORKS: `10.0.0.1,${network}` },
      ] as const,
  ),
  ["KEYHOLD_GATEWAY_PORT", { KEYHOLD_GATEWAY_PORT: "4425" }],
  ["KEYHOLD_GATEWAY_PORT", { ...ON, KEYHOLD_GATEWAY_PORT: "65536" }],
  ["KEYHOLD_GATEWAY_HOST", { ...ON, KEYHOLD_GATEWAY_HOST: "127.0.0.1" }],
  ["KEYHOLD_AUTH", { ...ON, KEYHOLD_GATEWAY_PORT: "4425", KEYHOLD_GATEWAY_HOST: "0.0.0.0" }],
  ...[
    ...["Bearer", "basic", "header", "header:", "header:a b", "header:a:b", "cookie:a=b", "query:ä"],
    // Headers with another meaning, and those of Keyhold itself.
    ...["header:authorization", "header:Cookie", "header:host", "header:connection", "header:content-type"],
    ...["header:X-Forwarded-For", "header:x-keyhold-authorization", "header:X-Keyhold-Key-Id"],
    "header:transfer-encoding",
    ...["bearer,bearer", "header:X-Key,header:x-key", "query:a,query:a"],
  ].map((place) => ["KEYHOLD_GATEWAY_CREDENTIALS", { ...ON, KEYHOLD_GATEWAY_CREDENTIALS: place }] as const),
  // Two keys with one header: the second one would replace the first.
  ...["plan id", "plan:id", "ä", "a".repeat(65), "plan_id,plan_id", "plan_id,plan-id", "plan_id,Plan.Id"].map(
    (keys) => ["KEYHOLD_GATEWAY_METADATA", { ...ON, KEYHOLD_GATEWAY_METADATA: keys }] as const,
  ),
]);

describe("an environment is rejected with the name of the variable:", () => {
  test.each(BAD)("%s, %j", (variable, environment) => {
    expect(() => toConfig(environment)).toThrow(
      expect.objectContaining({ code: "INVALID_ARGUMENT", violations: [expect.objectContaining({ field: variable })] }),
    );
  });
});
