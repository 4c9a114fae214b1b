import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { DescMethod, DescMethodUnary } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { Health } from "../../gen/health/v1/health_pb.js";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { rowOf, SERVICES } from "../../src/api/v2alpha1/rpcs.ts";
import { createGuard, type GuardedRpc } from "../../src/auth/guard.ts";
import { ADMIN_SCOPES } from "../../src/domain/admin-scopes.ts";
import { KeyholdError } from "../../src/domain/errors.ts";
import { createServer } from "../../src/transport/server.ts";
import { createHealth } from "../../src/transport/services/health.ts";
import { createReflection } from "../../src/transport/services/reflection.ts";
import { rpcName } from "../../src/transport/wire/protocol.ts";
import { bareServer } from "../support/bare-server.ts";
import { table } from "../support/conformance.ts";

const stopping = new AbortController().signal;
const health = createHealth(SERVICES, async () => ({}), stopping);

/** Every RPC that is served, with its policy: those of the API, of the standard health service, and both versions of reflection. */
const RPCS: readonly GuardedRpc[] = [
  ...SERVICES.flatMap(({ methods }) =>
    methods.map((method: DescMethod) => ({ name: rpcName({ method }), method, policy: rowOf(method)?.policy })),
  ),
  ...[health.check, health.watch, ...createReflection(SERVICES, stopping)].map((rpc) => ({
    ...rpc,
    name: rpcName(rpc),
  })),
];

/** An RPC that has no row in the table. */
const forgotten: DescMethodUnary = { ...ApiKeysService.method.verifyApiKey, name: "ForgottenRpc" };

/** A guard that requires no credential. */
const openGuard = createGuard({ authenticators: [], allowUnauthenticated: true });

const OPTIONS = { ...bareServer(), logger: pino({ level: "silent" }) };

describe("the table of RPCs", () => {
  test.each(table(RPCS.map((rpc) => [String(rpc.method), rpc] as const)))("has a policy for %s", (_, { policy }) => {
    expect(["public", "probe", "authenticated", ...ADMIN_SCOPES]).toContain(policy);
  });

  test("requires keyhold:admin for no RPC, so that least privilege is possible", () => {
    expect(RPCS.filter(({ policy }) => policy === "keyhold:admin")).toEqual([]);
  });

  test("is keyed by the method itself: a copy has no row", () => {
    expect(rowOf({ ...ApiKeysService.method.verifyApiKey })).toBeUndefined();
  });
});

describe("an RPC without a policy", () => {
  test("is refused by the guard, even without authentication", async () => {
    const refusal = { code: "CALLER_NOT_PERMITTED", message: "no access rule allows ForgottenRpc" };
    expect(() =>
      openGuard(
        { name: rpcName({ method: forgotten }), method: forgotten, policy: rowOf(forgotten)?.policy },
        { id: "call", header: () => undefined, peerAddress: "127.0.0.1", log: { add: () => {} } },
      ),
    ).toThrow(expect.objectContaining(refusal));
  });

  test("is refused over the network, and its implementation never runs", async () => {
    let runs = 0;
    const handler = () => async () => {
      runs += 1;
      return {};
    };
    const server = await createServer({
      ...OPTIONS,
      // The compiler requires a policy.
      implementations: [{ method: forgotten, handler, idempotency: "none", policy: rowOf(forgotten)?.policy as never }],
      guard: openGuard,
    });
    try {
      const url = await server.listen({ host: "127.0.0.1", port: 0 });
      const paths = ["/keyhold.v2alpha1.ApiKeysService/ForgottenRpc", "/v2alpha1/admin/apiKeys:verify"];
      const init = { method: "POST", headers: { "content-type": "application/json" }, body: '{"credential":"x"}' };
      const answers = await Promise.all(paths.map((path) => fetch(url + path, init)));
      expect(answers.map(({ status }) => status)).toEqual([403, 403]);
      expect(runs).toBe(0);
    } finally {
      await server.close();
    }
  });
});

test("a stream passes the guard like every other call", async () => {
  const guard = () => {
    throw new KeyholdError("CALLER_NOT_PERMITTED", "not you");
  };
  const server = await createServer({ ...OPTIONS, guard });
  try {
    const transport = createGrpcTransport({ baseUrl: await server.listen({ host: "127.0.0.1", port: 0 }) });
    const { serverReflectionInfo } = createClient(ServerReflection, transport);
    const { watch } = createClient(Health, transport);
    async function* nothing() {}
    for (const stream of [serverReflectionInfo(nothing()), watch({})]) {
      await expect(Array.fromAsync<unknown>(stream)).rejects.toMatchObject({ code: Code.PermissionDenied });
    }
  } finally {
    await server.close();
  }
});

test("the README lists every Keyhold scope", () => {
  const read = (file: string) => readFileSync(resolve(import.meta.dirname, "../..", file), "utf8");
  const named = (file: string) =>
    [...new Set(read(file).match(/keyhold:(?:admin|[a-z-]+(?:\.[a-z]+)?)\b(?!\/)/g))].sort();
  expect(named("README.md")).toEqual([...ADMIN_SCOPES].sort());
});

test("the page on authentication lists each scope with the RPCs that need it", () => {
  const page = readFileSync(resolve(import.meta.dirname, "../../docs/admin-authentication.md"), "utf8");
  const rows = [...page.matchAll(/^\| `(keyhold:[a-z.-]+)` \| [^|]+ \|([^|]*)\|$/gm)];
  const listed = rows.map(([, scope, rpcs = ""]) => [
    scope,
    (
      rpcs.match(
        /\w*[a-z]Api\w+|\w+(?:HmacKey|AuditEvent)s?|\w+Audit(?:Events?|Checkpoint|Proof)|\w+Webhook\w*|DeriveToken|StreamVerify|\w+Usage|\w+Quota|\w+Actors?\b|EndGracePeriod|\w+KeyPageSession/g,
      ) ?? []
    ).sort(),
  ]);
  const needing = (scope: string) => RPCS.filter(({ policy }) => policy === scope).map(({ method }) => method.name);
  expect(listed).toEqual(ADMIN_SCOPES.map((scope) => [scope, needing(scope).sort()]));
});
