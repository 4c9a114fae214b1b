import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { DescMethod, DescMethodUnary } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { ServerReflection as ServerReflectionAlpha } from "../../gen/grpc/reflection/v1alpha/reflection_pb.js";
import { Health } from "../../gen/health/v1/health_pb.js";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { SERVICES } from "../../src/api/implementations.ts";
import { createGuard } from "../../src/auth/guard.ts";
import { policyOf } from "../../src/auth/policy.ts";
import { ADMIN_SCOPES } from "../../src/domain/admin-scopes.ts";
import { KeyholdError } from "../../src/domain/errors.ts";
import { createServer } from "../../src/transport/server.ts";
import { bareServer } from "../support/bare-server.ts";
import { table } from "../support/conformance.ts";

/** Of the standard health service those that are served, and both versions of server reflection. */
const METHODS: readonly DescMethod[] = [
  ...SERVICES.flatMap((service) => service.methods as readonly DescMethod[]),
  Health.method.check,
  Health.method.watch,
  ServerReflection.method.serverReflectionInfo,
  ServerReflectionAlpha.method.serverReflectionInfo,
];

/** An RPC that somebody added and gave no row in the table of policies. */
const forgotten: DescMethodUnary = { ...ApiKeysService.method.verifyApiKey, name: "ForgottenRpc" };

/** A guard that asks nobody for a credential. */
const openGuard = createGuard({ authenticators: [], allowUnauthenticated: true });

const OPTIONS = { ...bareServer(), logger: pino({ level: "silent" }) };

describe("the table of policies", () => {
  test.each(table(METHODS.map((method) => [String(method), method] as const)))("has a row for %s", (_, method) => {
    expect(["public", "probe", ...ADMIN_SCOPES]).toContain(policyOf(method));
  });

  test("lets nobody but an administrator need keyhold:admin, so that least privilege is possible", () => {
    expect(METHODS.filter((method) => policyOf(method) === "keyhold:admin")).toEqual([]);
  });

  test("is for the very methods: one that is only named so has no row", () => {
    expect(policyOf({ ...ApiKeysService.method.verifyApiKey })).toBeUndefined();
  });
});

describe("an RPC without a policy", () => {
  test("is refused by the guard, even where everyone may do everything", async () => {
    const refusal = { code: "CALLER_NOT_PERMITTED", message: "ForgottenRpc has no policy" };
    expect(() =>
      openGuard(forgotten, { id: "call", header: () => undefined, peerAddress: "127.0.0.1", log: { add: () => {} } }),
    ).toThrow(expect.objectContaining(refusal));
  });

  test("is refused on the wire, and its implementation never runs", async () => {
    let runs = 0;
    const handler = async () => {
      runs += 1;
      return {};
    };
    const server = await createServer({
      ...OPTIONS,
      implementations: [{ method: forgotten, handler, maxRequestBytes: 1024 }],
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

test("the README and the command say every scope over Keyhold", () => {
  const read = (file: string) => readFileSync(resolve(import.meta.dirname, "../..", file), "utf8");
  const named = (file: string) =>
    [...new Set(read(file).match(/keyhold:(?:admin|[a-z]+(?:\.[a-z]+)?)\b(?!\/)/g))].sort();
  expect(named("README.md")).toEqual([...ADMIN_SCOPES].sort());
  expect(named("src/cli/program.ts")).toEqual([...ADMIN_SCOPES].sort());
});
