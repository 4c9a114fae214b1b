import { toBinary } from "@bufbuild/protobuf";
import { VerifyApiKeyRequestSchema } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { startBaseline } from "../baseline/start.ts";
import { once, type Stage } from "../harness/stage.ts";
import { jsonBodies, writeBodies } from "../load/requests.ts";
import { type Json, PATHS, post } from "../subject/client.ts";
import { issueKeys, verifyAll } from "../subject/fill.ts";
import { install } from "../subject/installation.ts";

/** How many keys the load goes through in turn: all are in the cache. */
const KEYS = 1000;

/** Starts the service with these variables, and with keys that were issued and verified through its API. */
export const stockedWith = (environment: Readonly<Record<string, string>>) => async (stage: Stage) => {
  const installation = await install(stage, { environment });
  const { url } = installation.server;
  const secrets = await issueKeys(url, KEYS);
  await verifyAll(url, secrets);
  const [credential = ""] = secrets;
  const verdict: Json = await post(url + PATHS.verify, { credential });
  return { installation, url, secrets, credential, verdict };
};

export type Stocked = Awaited<ReturnType<ReturnType<typeof stockedWith>>>;

/** The service with its defaults, its keys and one of its verdicts. */
export const stocked = once(stockedWith({}));

/** Bodies that ask for a verdict on each of the keys. */
export const verifyBodies = once(async (stage) => {
  const { secrets } = await stocked(stage);
  return jsonBodies(
    stage,
    secrets.map((credential) => ({ credential })),
  );
});

export const verifyMessages = once(async (stage) => {
  const { secrets } = await stocked(stage);
  const messages = secrets.map((credential) =>
    toBinary(VerifyApiKeyRequestSchema, { $typeName: "keyhold.v2alpha1.VerifyApiKeyRequest", credential }),
  );
  return writeBodies(stage, messages);
});

/** The bare Fastify route that answers as the service does. */
export const bareRoute = once(async (stage) =>
  startBaseline(stage, "verify", { answer: (await stocked(stage)).verdict }),
);
