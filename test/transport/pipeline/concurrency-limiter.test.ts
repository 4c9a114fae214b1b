import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { ApiKeysService } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { IssuedApiKeysService } from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import type { Implementation } from "../../../src/api/row.ts";
import type { Call } from "../../../src/api/rpc.ts";
import { rowOf } from "../../../src/api/v2alpha1/rpcs.ts";
import type { Guard } from "../../../src/auth/guard.ts";
import type { Principal } from "../../../src/domain/principal.ts";
import type { MaybePromise } from "../../../src/lib/maybe-promise.ts";
import { createRpc } from "../../../src/transport/pipeline/call-pipeline.ts";
import { ConcurrencyLimiter } from "../../../src/transport/pipeline/concurrency-limiter.ts";
import { operator } from "../../support/principal.ts";

const { batchVerifyApiKeys, revokeApiKey, verifyApiKey } = ApiKeysService.method;
const { listIssuedApiKeys } = IssuedApiKeysService.method;
const admit: Guard = () => operator;
type Fields = Record<string, unknown>;

const OVERLOADED = { code: Code.Unavailable, metadata: new Headers({ "retry-after": "1" }) };

/** An RPC whose responses the test holds; `begun` counts its invocations. */
function heldRpc(
  method: Implementation["method"],
  limiter: ConcurrencyLimiter,
  {
    mayAnswerFromCache = false,
    guard = admit,
    respond,
  }: { mayAnswerFromCache?: boolean; guard?: Guard; respond?: () => Fields } = {},
) {
  const held: PromiseWithResolvers<Fields>[] = [];
  const lines: Fields[] = [];
  const faults: unknown[] = [];
  const handler = () => (): MaybePromise<Fields> => {
    const answer = Promise.withResolvers<Fields>();
    held.push(answer);
    return respond?.() ?? answer.promise;
  };
  const row = rowOf(method);
  if (row === undefined) throw new TypeError(`${method.name} has no row`);
  const rpc = createRpc({ ...row, method, handler, mayAnswerFromCache }, guard, limiter);
  const call: Call = {
    id: "call",
    header: () => undefined,
    setHeader: () => {},
    setTrailer: () => {},
    peerAddress: "127.0.0.1",
    isAbandoned: false,
    log: {
      ...{ add: (facts) => lines.push(facts), accepted: () => {}, note: () => {}, onEnd: () => {} },
      ...{ fault: (error) => faults.push(error), outage: (error) => faults.push(error) },
    },
  };
  const invoke = async (fields: Fields, principal: Principal) =>
    rpc.invoke(create(method.input, fields), principal, call);
  return {
    invoke,
    ask: async (fields: Fields) => invoke(fields, await rpc.admit(call)),
    held,
    lines,
    faults,
    admit: async () => rpc.admit(call),
    release: () => {
      for (const { resolve } of held.splice(0)) resolve({});
    },
  };
}

const aKey = { keyId: "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10" };
const nextTurn = () => new Promise(setImmediate);

test("a change above the limit is refused before its body is read, and accepted again when another has ended", async () => {
  const revoke = heldRpc(revokeApiKey, new ConcurrencyLimiter(2));
  const answers = [revoke.ask(aKey), revoke.ask(aKey)];
  await nextTurn();
  await expect(revoke.ask(aKey)).rejects.toMatchObject(OVERLOADED);
  await expect(revoke.admit()).rejects.toMatchObject(OVERLOADED);
  expect(revoke.held).toHaveLength(2);
  revoke.held[0]?.reject(new Error("a fault is an end too"));
  await expect(answers[0]).rejects.toMatchObject({ code: Code.Internal });
  const third = revoke.ask(aKey);
  await nextTurn();
  expect(revoke.held).toHaveLength(3);
  revoke.release();
  await Promise.all([answers[1], third]);
});

test("a change whose body was read while others took the capacity is not executed", async () => {
  const revoke = heldRpc(revokeApiKey, new ConcurrencyLimiter(1));
  const principal = await revoke.admit();
  const other = revoke.ask(aKey);
  await nextTurn();
  await expect(revoke.invoke(aKey, principal)).rejects.toMatchObject(OVERLOADED);
  expect(revoke.held).toHaveLength(1);
  revoke.release();
  await other;
});

test("a call answered from the cache is never rejected, and one that would wait is", async () => {
  const limiter = new ConcurrencyLimiter(1);
  const revoke = heldRpc(revokeApiKey, limiter);
  const waiting = revoke.ask(aKey);
  await nextTurn();
  const known = heldRpc(verifyApiKey, limiter, { mayAnswerFromCache: true, respond: () => ({ isValid: true }) });
  for (let time = 0; time < 10; time++) expect(await known.ask({ credential: "a" })).toEqual({ isValid: true });
  const unknown = heldRpc(verifyApiKey, limiter, { mayAnswerFromCache: true });
  await expect(unknown.ask({ credential: "a" })).rejects.toMatchObject(OVERLOADED);
  unknown.held[0]?.reject(new Error("the rejection of an abandoned call ends no process"));
  revoke.release();
  await waiting;
});

test("a call that waits for authentication counts, and is refused above the limit", async () => {
  const limiter = new ConcurrencyLimiter(1);
  const issuer = Promise.withResolvers<typeof operator>();
  const verify = heldRpc(verifyApiKey, limiter, {
    mayAnswerFromCache: true,
    guard: () => issuer.promise,
    respond: () => ({}),
  });
  const first = verify.admit();
  await expect(verify.admit()).rejects.toMatchObject(OVERLOADED);
  issuer.resolve(operator);
  await first;
  await verify.admit();
});

test.each([
  [
    "a batch, by its items,",
    batchVerifyApiKeys,
    { requests: Array.from({ length: 95 }, () => ({ credential: "a" })) },
    10,
  ],
  ["a list, by its page,", listIssuedApiKeys, { pageSize: 1000 }, 100],
  ["a list above the largest page", listIssuedApiKeys, { pageSize: 10_000 }, 100],
  ["a list with the largest page_size", listIssuedApiKeys, { pageSize: 2 ** 31 - 1 }, 100],
  ["a list with the default page", listIssuedApiKeys, {}, 5],
] as const)("%s weighs", async (_, method, fields, units) => {
  const limiter = new ConcurrencyLimiter(2 * units);
  const rpc = heldRpc(method, limiter);
  const answers = [rpc.ask(fields), rpc.ask(fields)];
  await nextTurn();
  await expect(rpc.ask(fields)).rejects.toMatchObject(OVERLOADED);
  rpc.release();
  await Promise.all(answers);
});

test("a refusal is in the log line of its call and is no server error", async () => {
  const revoke = heldRpc(revokeApiKey, new ConcurrencyLimiter(0));
  await expect(revoke.ask(aKey)).rejects.toMatchObject(OVERLOADED);
  expect(Object.assign({}, ...revoke.lines)).toMatchObject({ code: "UNAVAILABLE", reason: "OVERLOADED" });
  expect(revoke.faults).toEqual([]);
});
