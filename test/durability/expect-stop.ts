import { expect, onTestFinished } from "vitest";
import { serve } from "../support/keyhold.ts";
import { issue, restClient } from "../support/rest.ts";
import { ROOT_SECRET } from "../support/server.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";

/** Expects that a server stops on SIGTERM when it has lost its database in this way. */
export async function expectStop(databaseUrl: string, fault: "down" | "freeze"): Promise<void> {
  const proxy = await TcpProxy.start(databaseUrl);
  onTestFinished(() => proxy.close());
  const environment = { KEYHOLD_DATABASE_URL: proxy.url, KEYHOLD_ROOT_SECRET: ROOT_SECRET };
  const serving = await serve(environment);
  onTestFinished(() => serving.kill("SIGKILL"));
  await issue(restClient(serving));
  await proxy[fault]();
  serving.kill("SIGTERM");
  expect(await serving.ended).toMatchObject({ code: 0, signal: null });
}
