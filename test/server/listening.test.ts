import { expect, test } from "vitest";
import { cannotListen, listenFailure } from "../../src/server/listening.ts";
import { freePort } from "../support/free-port.ts";
import { occupyPort } from "../support/occupy-port.ts";

/** TEST-NET-1 (RFC 5737): an address that no machine has. */
const NOWHERE = { host: "192.0.2.1", port: 0 };

test("a free port passes the check, and remains free", async () => {
  const address = { host: "127.0.0.1", port: await freePort() };
  expect([await listenFailure(address), await listenFailure(address)]).toEqual([null, null]);
});

test("the error names the variable to change", async () => {
  const taken = { host: "127.0.0.1", port: await occupyPort() };
  const inUse = await listenFailure(taken);
  expect(inUse && cannotListen("KEYHOLD", taken, inUse)).toMatchObject({
    code: "INVALID_ARGUMENT",
    message: `KEYHOLD_PORT: ${taken.port} is already in use on 127.0.0.1`,
  });
  const elsewhere = await listenFailure(NOWHERE);
  expect(elsewhere && cannotListen("KEYHOLD_METRICS", NOWHERE, elsewhere).message).toBe(
    "KEYHOLD_METRICS_HOST: cannot listen on 192.0.2.1:0 (EADDRNOTAVAIL)",
  );
  const denied = Object.assign(new Error("no"), { code: "EACCES" });
  expect(cannotListen("KEYHOLD", { host: "::", port: 80 }, denied).message).toBe(
    "KEYHOLD_PORT: cannot listen on :::80 (EACCES)",
  );
});
