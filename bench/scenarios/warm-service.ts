import { create, toBinary } from "@bufbuild/protobuf";
import { VerifyApiKeyRequestSchema } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { startBaseline } from "../baseline/start.ts";
import { type Fixture, once } from "../harness/fixture.ts";
import { jsonBodies, writeBodies } from "../load/requests.ts";
import { type Json, PATHS, post } from "../subject/client.ts";
import { issueKeys, verifyAll } from "../subject/fill.ts";
import { install } from "../subject/installation.ts";

/** Number of keys that the load cycles through, all cached: more than the processor's caches hold. */
const KEYS = 64_000;

/** Starts the service with these variables, and with keys that were issued and verified through its API. */
export const warmServiceWith = (environment: Readonly<Record<string, string>>) => async (fixture: Fixture) => {
  const installation = await install(fixture, { environment });
  const { url } = installation.server;
  const secrets = await issueKeys(url, KEYS);
  await verifyAll(url, secrets);
  const [credential = ""] = secrets;
  const verdict: Json = await post(url + PATHS.verify, { credential });
  return { installation, url, secrets, credential, verdict };
};

export type WarmService = Awaited<ReturnType<ReturnType<typeof warmServiceWith>>>;

/** The service with default settings, its keys and the verdict on the first one. */
export const warmService = once(warmServiceWith({}));

/** The bodies of a verification of each key. */
export const verifyBodies = once(async (fixture) => {
  const { secrets } = await warmService(fixture);
  return jsonBodies(
    fixture,
    secrets.map((credential) => ({ credential })),
  );
});

export const verifyMessages = once(async (fixture) => {
  const { secrets } = await warmService(fixture);
  const messages = secrets.map((credential) =>
    toBinary(VerifyApiKeyRequestSchema, create(VerifyApiKeyRequestSchema, { credential })),
  );
  return writeBodies(fixture, messages);
});

/** The bare Fastify route, with a response of the service. */
export const bareRoute = once(async (fixture) =>
  startBaseline(fixture, "verify", { answer: (await warmService(fixture)).verdict }),
);
