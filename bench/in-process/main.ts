/** Runs operations in a process without sockets, on request of its parent, so that the figures exclude the framework. */
import { createPublicKey, generateKeyPairSync, sign, verify } from "node:crypto";
import { ApiKeysService, TokenAlgorithm } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { DerivedKeysService } from "../../gen/keyhold/v2alpha1/derived_keys_pb.js";
import { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { KEY } from "../subject/fill.ts";
import type { Operation, OperationRequest, OperationResponse } from "./protocol.ts";
import { openRpcs, rpcCaller } from "./rpcs.ts";

const rpc = rpcCaller((await openRpcs("attach")).rpcs);
/** Another node: one that has derived a token has it in its cache. */
const other = rpcCaller((await openRpcs("attach")).rpcs);
const issueKey = rpc(IssuedApiKeysService.method.createIssuedApiKey);
const deriveHere = rpc(ApiKeysService.method.deriveToken);
const verifyApiKey = rpc(ApiKeysService.method.verifyApiKey);
const { name, actor_id: actorId, scopes, metadata } = KEY;
const { secret: credential } = await issueKey({ name, actorId, scopes: [...scopes], metadata });

/** The JWTs of the last verification. */
let tokens: string[] = [];

async function derive(deriveToken: typeof deriveHere): Promise<string> {
  const { token } = await deriveToken({ credential, algorithm: TokenAlgorithm.JWT });
  if (token?.token === undefined) throw new Error("no token");
  return token.token;
}

async function deriveMany(count: number, deriveToken = deriveHere): Promise<string[]> {
  const derived: string[] = [];
  for (let index = 0; index < count; index++) derived.push(await derive(deriveToken));
  return derived;
}

/** Returns the signing input and the signature of a JWT (RFC 7515 §5.1). */
function partsOf(token: string): { data: Buffer; signature: Buffer } {
  const dot = token.lastIndexOf(".");
  return { data: Buffer.from(token.slice(0, dot)), signature: Buffer.from(token.slice(dot + 1), "base64url") };
}

/** Each resolves to the milliseconds of the operation itself. */
const OPERATIONS: Readonly<Record<Operation, (count: number) => Promise<number>>> = {
  sign: async (count) => {
    const { privateKey } = generateKeyPairSync("ed25519");
    const { data } = partsOf(await derive(deriveHere));
    return timed(async () => {
      for (let index = 0; index < count; index++) sign(null, data, privateKey);
    });
  },
  derive: (count) => timed(() => deriveMany(count)),
  verify: async (count) => {
    tokens = await deriveMany(count, other(ApiKeysService.method.deriveToken));
    return timed(async () => {
      for (const token of tokens) {
        const { isValid } = await verifyApiKey({ credential: token });
        if (!isValid) throw new Error("a JWT is not valid");
      }
    });
  },
  "verify-signatures": async () => {
    const { keys: [jwk] = [] } = await rpc(DerivedKeysService.method.getJwks)({});
    if (jwk === undefined) throw new Error("no public key");
    const { kty, crv, x } = jwk;
    const publicKey = createPublicKey({ key: { kty, crv, x }, format: "jwk" });
    const signed = tokens.map(partsOf);
    return timed(async () => {
      for (const { data, signature } of signed) {
        if (!verify(null, data, publicKey, signature)) throw new Error("a signature is not valid");
      }
    });
  },
};

async function timed(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

async function respond({ work, count }: OperationRequest): Promise<OperationResponse> {
  try {
    return { rate: count / ((await OPERATIONS[work](count)) / 1000) };
  } catch (error) {
    return { error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

process.on("message", async (request: OperationRequest) => process.send?.(await respond(request)));
process.on("disconnect", () => process.exit());
process.send?.("ready");
