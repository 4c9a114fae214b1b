import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { read } from "../deploy/files.ts";
import { run } from "../support/programs/run.ts";
import { type Application, startApplication } from "./application.ts";
import { send } from "./client.ts";
import { startGateway } from "./gateway.ts";
import { haproxyWith } from "./kinds/haproxy.ts";
import { DECIDED, KINDS } from "./kinds/index.ts";
import { INSTALL_TIMEOUT, installPrograms } from "./programs.ts";
import { type Keys, makeKeys, type Servers, startServers } from "./servers.ts";

/** The requests of docs/gateways.md, and gateways that are set up incorrectly. */

let application: Application;
let servers: Servers;
let keys: Keys;
beforeAll(async () => {
  await installPrograms();
  [application, servers] = await Promise.all([startApplication(), startServers("forward-auth,ext-authz")]);
  keys = await makeKeys(servers);
}, INSTALL_TIMEOUT);
afterAll(() => Promise.all([application?.close(), servers?.close()]));

const parent = () => join(inject("testDir"), "page");
const settings = () => ({ application: application.address, keyhold: servers.addresses, token: servers.token });

/** The commands of the page with the status that it shows. */
const TRIED = [...read("docs/gateways.md").matchAll(/^(curl -i http:\/\/127\.0\.0\.1:8000\/.*?) +# (\d{3})$/gm)].map(
  ([, command = "", status = ""]) => ({ command, status }),
);

test("the page shows requests", () => {
  expect(TRIED.map(({ status }) => status)).toEqual(["200", "401", "401", "401"]);
});

describe.each(KINDS)("$name", (kind) => {
  test("answers the requests of the page as it shows", async () => {
    const gateway = await startGateway(kind, parent(), settings());
    try {
      for (const { command, status } of TRIED) {
        const script = command.replace("http://127.0.0.1:8000", gateway.url);
        const env = { secret: keys.valid, revoked: keys.revoked };
        const { stdout } = await run({ program: "bash", args: ["-c", script], cwd: import.meta.dirname, env });
        expect({ command, first: stdout.split("\r\n")[0] }).toEqual({
          command,
          first: expect.stringMatching(`^HTTP/1.1 ${status} `),
        });
      }
    } finally {
      await gateway.stop();
    }
  });

  test("refuses every request if its token is wrong, revoked or missing", async () => {
    const revoked = await servers.issue({ scopes: ["keyhold:verify"], ttl: "1h" });
    await servers.revoke(revoked.keyId);
    const { secret: withoutScope } = await servers.issue({ scopes: ["read"] });
    for (const token of ["kh_v1_wrong", revoked.secret, withoutScope, ""]) {
      application.forget();
      const gateway = await startGateway(kind, parent(), { ...settings(), token });
      try {
        const answer = await send(gateway.url, { headers: [["Authorization", `Bearer ${keys.valid}`]] });
        expect(answer.status).toBe(kind.limits.statusOf?.[503] ?? 503);
        // The client's credential is not the problem.
        if (DECIDED.includes(kind)) expect(answer.header("WWW-Authenticate")).toBe(undefined);
        expect(application.received).toEqual([]);
      } finally {
        await gateway.stop();
      }
    }
  });
});

test("HAProxy refuses a request if its script fails", async () => {
  application.forget();
  const script = read("deploy/gateways/keyhold.lua").replace("local url", 'error("a bug") local url');
  const gateway = await startGateway(haproxyWith(script), parent(), settings());
  try {
    const answer = await send(gateway.url, { headers: [["Authorization", `Bearer ${keys.valid}`]] });
    expect(answer.status).toBe(503);
    expect(application.received).toEqual([]);
  } finally {
    await gateway.stop();
  }
});
