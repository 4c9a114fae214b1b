import type { Check } from "../../tap.ts";
import { collect, type Ok } from "../checks.ts";
import { clientsOf, codeOf, PROTOCOL_NAMES, type ProtocolName, refusal, type Settings } from "./clients.ts";
import { errorDetails, unknownMethod } from "./errors.ts";
import { jwks, offline } from "./jwks.ts";
import { lifeOfAKey } from "./life.ts";
import { deadlineAndCancellation, deadlineOfTheServer } from "./streams.ts";

/** The script of the test page: `main.ts` calls what it exports. */

/** Checks everything from a page of an allowed origin. */
export async function checkAllowed(settings: Settings): Promise<Check[]> {
  const byProtocol = await Promise.all(PROTOCOL_NAMES.map((name) => checkProtocol(name, settings)));
  const others = await collect(
    (ok) => jwks(settings, ok),
    (ok) => offline(clientsOf("Connect in JSON", settings), settings, ok),
    (ok) => deadlineOfTheServer(settings, ok),
  );
  return [...byProtocol.flat(), ...others];
}

async function checkProtocol(name: ProtocolName, settings: Settings): Promise<Check[]> {
  const clients = clientsOf(name, settings);
  const checks = await collect(
    (ok) => lifeOfAKey(clients, ok),
    (ok) => errorDetails(clients, name, settings, ok),
    (ok) => unknownMethod(clients, ok),
    (ok) => deadlineAndCancellation(clients, ok),
  );
  return checks.map((check) => ({ ...check, name: `${name}: ${check.name}` }));
}

/** Checks that a page of another origin reads nothing, whatever it sends. */
export async function checkRefused(settings: Settings): Promise<Check[]> {
  const call = async (name: ProtocolName, ok: Ok) => {
    const error = await refusal(clientsOf(name, settings).keys.verifyApiKey({ credential: "x" }));
    // The browser says no more than that the request failed.
    ok(`${name}: a page of another origin is refused`, error.cause instanceof TypeError, codeOf(error));
  };
  return collect(...PROTOCOL_NAMES.map((name) => (ok: Ok) => call(name, ok)), async (ok) => {
    const failure = await fetch(`${settings.baseUrl}/v2alpha1/derivedKeys/jwks.json`).catch((error: unknown) => error);
    ok("the public keys are not readable for a page of another origin", failure instanceof TypeError, failure);
  });
}
