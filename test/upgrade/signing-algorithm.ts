import { join } from "node:path";
import { startDatabase } from "../faults/database.ts";
import { derive } from "../support/conformance.ts";
import { runKeyhold, type Serving, serve } from "../support/keyhold.ts";
import { issue, type Json, restClient, verify } from "../support/rest.ts";
import { CHECKOUT, COMMAND, migrate } from "./release.ts";

const ROOT_SECRET = "upgrade-root-secret-0123456789-abcdefghijklmn";

/**
 * Changes the signing algorithm on the way from release 0.1, which knows EdDSA only, and back. Returns the failures: the change must be
 * refused while a server of 0.1 runs; one that is started after it must not start; after the change back, it must verify.
 */
export async function changeAlgorithm(dir: string, oldCheckout: string): Promise<string[]> {
  const failures: string[] = [];
  const check = (name: string, found: Json, expected: Json) => {
    const [is, should] = [found, expected].map((value) => JSON.stringify(value));
    if (is !== should) failures.push(`${name}: ${is}, not ${should}`);
  };
  const database = await startDatabase(dir, (url, serverRole) => migrate(CHECKOUT, url, serverRole));
  const environment = { KEYHOLD_DATABASE_URL: database.url(database.port), KEYHOLD_ROOT_SECRET: ROOT_SECRET };
  const rotate = (algorithm: string) =>
    runKeyhold(["signing-keys", "rotate", "--algorithm", algorithm], environment).then(({ code }) => code);
  const startOld = () => serve(environment, join(oldCheckout, COMMAND));
  const servers: Serving[] = [];
  try {
    const [old, current] = [await startOld(), await serve(environment)];
    servers.push(old, current);
    const rest = restClient(current);
    const { secret } = await issue(rest);
    const newJwt = async () => (await derive(rest, secret)).token;
    const eddsa = await newJwt();
    check("a change while 0.1 runs", await rotate("ES256"), 2);
    check("a token for 0.1 after it", (await verify(restClient(old), await newJwt())).is_valid, true);

    await stop(old);
    check("a change without 0.1", await rotate("ES256"), 0);
    const es256 = await newJwt();
    for (const token of [eddsa, es256]) check("a token after the change", (await verify(rest, token)).is_valid, true);
    const reason = await startOld().then(
      (started) => stop(started).then(() => "it started"),
      (error) => String(error),
    );
    if (!/the signing key \S+ cannot be unwrapped/.test(reason)) failures.push(`0.1 with a key for ES256: ${reason}`);

    check("the change back", await rotate("EdDSA"), 0);
    const back = await startOld();
    servers.push(back);
    const verdicts = [eddsa, es256, await newJwt(), secret].map((one) => verify(restClient(back), one));
    const codes = (await Promise.all(verdicts)).map(({ is_valid, error_code }) => error_code ?? is_valid);
    check("0.1 after the change back", codes, [true, "VERIFICATION_ERROR_SIGNATURE_INVALID", true, true]);
    check("a token for ES256 after the change back", (await verify(rest, es256)).is_valid, true);
    return failures;
  } finally {
    await Promise.all(servers.map(stop));
    await database.stop();
  }
}

async function stop(server: Serving): Promise<void> {
  server.kill("SIGTERM");
  await server.ended;
}
