import { join } from "node:path";
import { type GatewayKind, startGateway } from "../../test/gateways/gateway.ts";
import { writeNginx } from "../../test/gateways/kinds/nginx.ts";
import { pathOf } from "../../test/gateways/programs.ts";
import type { Fixture } from "../harness/fixture.ts";

/** The least that an application can do. */
const ANSWER: Pick<GatewayKind, "name" | "configure"> = {
  name: "application",
  configure: async ({ folder, port }) => {
    const site = `server { listen 127.0.0.1:${port}; keepalive_requests 1000000; location / { return 200 "hello"; } }`;
    return { program: pathOf("nginx"), args: await writeNginx(folder, "", site) };
  },
};

/** Starts an application for gateways on the core of the load, and returns its `host:port`. */
export async function startApplication(fixture: Fixture): Promise<string> {
  const none = { application: "", keyhold: ["", ""] as const, token: "" };
  const on = (command: readonly string[]) => fixture.pinning.on("load", command);
  const { url, stop } = await startGateway(ANSWER, join(fixture.dir, "application"), none, on);
  fixture.onClose(stop);
  return new URL(url).host;
}
