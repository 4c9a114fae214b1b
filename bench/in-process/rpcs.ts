import { create, type DescMessage, type DescMethodUnary, type MessageInitShape } from "@bufbuild/protobuf";
import type { Call, Rpc } from "../../src/api/rpc.ts";
import { implementRpcs } from "../../src/api/v2alpha1/rpcs.ts";
import { createGuard } from "../../src/auth/guard.ts";
import { createLastUsedStore } from "../../src/postgres/keys/verification-store.ts";
import { createApi, createVerifyContext } from "../../src/server/api.ts";
import { createAuditFeed } from "../../src/server/audit.ts";
import { readConfig } from "../../src/server/config/config.ts";
import { createKeyPages } from "../../src/server/key-pages.ts";
import { openResources } from "../../src/server/resources.ts";
import { webhooksContext } from "../../src/server/webhooks.ts";
import { createSigning } from "../../src/signing/signing.ts";
import { createRpc } from "../../src/transport/pipeline/call-pipeline.ts";
import { ConcurrencyLimiter } from "../../src/transport/pipeline/concurrency-limiter.ts";
import type { UsageCounter } from "../../src/usage/counter.ts";
import { createLastUsed } from "../../src/verify/last-used.ts";

export interface OpenRpcs {
  readonly rpcs: readonly Rpc[];
  close(): Promise<void>;
}

/**
 * Opens the RPCs with guard, validation and error table, as transports receive them, on the database that the environment names. "attach"
 * makes this process a node beside the server that started the database. Verifications are counted if there is a counter.
 */
export async function openRpcs(ifRunning: "attach" | "reject", usage?: UsageCounter): Promise<OpenRpcs> {
  const config = readConfig();
  const resources = await openResources(config, { log: () => {}, ifRunning });
  await resources.coherence.membership.join();
  const guard = createGuard({ authenticators: [], allowUnauthenticated: true });
  const signing = await createSigning(resources.signing);
  const lastUsed = createLastUsed(createLastUsedStore(resources.database), resources.keys.clock);
  const context = createVerifyContext(config, resources, signing, lastUsed, { adopt: () => {} }, { error: fail });
  const webhooks = webhooksContext(config, resources, () => {});
  const server = {
    auditFeed: createAuditFeed(resources),
    webhooks,
    keyPages: createKeyPages(config, resources, null).context,
    onDenied: () => {},
    admitChange: () => {},
    isStopping: () => false,
  };
  const api = createApi(config, resources, signing, context, server, usage);
  const limiter = new ConcurrencyLimiter();
  const rpcs = implementRpcs(api).map((implementation) => createRpc(implementation, guard, limiter));
  return { rpcs, close: resources.close };
}

function fail(error: unknown): never {
  throw error;
}

/** A call without a connection; its log line is discarded. */
const call: Call = {
  id: "bench",
  header: () => undefined,
  setHeader: () => {},
  setTrailer: () => {},
  peerAddress: "127.0.0.1",
  isAbandoned: false,
  log: { add: () => {}, accepted: () => {}, note: () => {}, fault: fail, outage: fail, onEnd: () => {} },
};

type CallRpc<M extends DescMethodUnary> = (
  request: MessageInitShape<M["input"]>,
) => Promise<MessageInitShape<M["output"]>>;

/** Returns a function that calls RPCs as a transport does after it has read the request: it admits and invokes. */
export function rpcCaller(rpcs: readonly Rpc[]) {
  return <I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
  ): CallRpc<DescMethodUnary<I, O>> => {
    const rpc: Rpc<I, O> | undefined = rpcs.find((one): one is Rpc & Rpc<I, O> => one.method === method);
    if (rpc === undefined) throw new TypeError(`there is no ${method.name}`);
    return async (request) => rpc.invoke(create(method.input, request), await rpc.admit(call), call);
  };
}
