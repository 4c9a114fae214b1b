import { expect, onTestFinished, test } from "vitest";
import { openSchema } from "../postgres/new-keys.ts";
import { TcpProxy, withoutNotifications } from "../support/tcp-proxy.ts";
import { newNode } from "./nodes.ts";

test("a node without notifications does not join, and reports the remedy", async () => {
  const { url } = await openSchema();
  const proxy = await TcpProxy.start(url, { filter: withoutNotifications });
  onTestFinished(() => void proxy.close());
  const node = await newNode(url, "a", { listenUrl: proxy.url });
  await expect(node.membership.join()).rejects.toThrow(
    "KEYHOLD_DATABASE_LISTEN_URL must connect directly to the database",
  );
  expect(node.membership.lease.isFresh).toBe(false);
});
