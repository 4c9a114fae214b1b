import type { FastifyBaseLogger } from "fastify";
import type { ApiContext } from "../api/row.ts";
import type { Principal } from "../domain/principal.ts";
import type { Adopter } from "../hashing/adopter.ts";
import type { Signing } from "../signing/signing.ts";
import type { UsageCounter } from "../usage/counter.ts";
import type { VerifyContext } from "../verify/context.ts";
import { explain } from "../verify/explain.ts";
import { tokenCacher } from "../verify/identify.ts";
import type { LastUsed } from "../verify/last-used.ts";
import { restrictedTo } from "../verify/restricted.ts";
import { verify, verifyAll } from "../verify/verify.ts";
import type { Config } from "./config/config.ts";
import type { Resources } from "./resources.ts";

/** Returns the context of verification. Its verdicts are not counted. */
export function createVerifyContext(
  { issuer }: Config,
  { keys, reader, rings, shapes, hashing }: Resources,
  signing: Signing,
  lastUsed: LastUsed,
  { adopt }: Pick<Adopter, "adopt">,
  logger: Pick<FastifyBaseLogger, "error">,
): VerifyContext {
  const { findKey, findAll, findStale, credentials } = reader;
  const { publicKey, hasCurrentPublicKeys, lastPublicKey } = signing;
  return {
    ...{ findKey, findAll, findStale, credentials, allowsStale: true },
    ...{ publicKey, hasCurrentPublicKeys, lastPublicKey },
    clock: keys.clock,
    shapes,
    issuer,
    rings,
    findByHash: hashing.findByHash,
    adopt,
    charge: null,
    onValid: lastUsed.note,
    onVerdict: () => {},
    onStale: () => {},
    onFault: (error) => logger.error({ err: error }, "the credential could not be verified"),
  };
}

/** Returns the same context without stale verdicts. Limits are for verifications by services, not for calls to Keyhold. */
export function strictly(context: VerifyContext): VerifyContext {
  return { ...context, allowsStale: false, charge: null };
}

/** Returns the same context with look-ups that do not wait behind others. */
export function reserved(context: VerifyContext, { reserved }: Resources["reader"]): VerifyContext {
  return { ...context, ...reserved };
}

export function createApi(
  { issuer, tokenLimits }: Config,
  { keys, reader, rings, hashing, audit, auditTree, actors, usage: { reader: usageReader } }: Resources,
  signing: Signing,
  context: VerifyContext,
  server: Pick<ApiContext, "auditFeed" | "webhooks" | "onDenied" | "isStopping">,
  usage: Pick<UsageCounter, "add"> | null = null,
): ApiContext {
  const { clock, random } = keys;
  const strict = strictly(context);
  const counted = usage === null ? context : countingUsage(context, usage);
  const of = (all: VerifyContext, { restrictions }: Principal) => restrictedTo(all, restrictions);
  return {
    keys,
    audit,
    auditTree,
    actors,
    usage: { reader: usageReader, clock, rings },
    derive: {
      ...{ clock, random, issuer, limits: tokenLimits, macaroonRoot: rings.macaroonRoot, signer: signing.signer },
      cacheToken: (credential, parent) => tokenCacher(context, credential, parent),
    },
    hmacKeys: hashing.hmacKeys,
    issuer,
    verify: (caller, credential, mode, presentation) =>
      verify(of(counted, caller), credential, mode, presentation, caller),
    verifyStrictly: (caller, credential, presentation) =>
      verify(of(strict, caller), credential, "default", presentation, caller),
    verifyReserved: (caller, credential) =>
      verify(of(reserved(strict, reader), caller), credential, "default", undefined, caller),
    verifyAll: (caller, requests, mode) => verifyAll(of(counted, caller), requests, mode, caller),
    explain: (caller, subject, presentation) =>
      explain(of({ ...strict, charge: context.charge }, caller), subject, presentation),
    jwks: signing.jwks,
    ...server,
  };
}

/** Returns the same context, whose verdicts count as usage of their keys. */
function countingUsage(context: VerifyContext, { add }: Pick<UsageCounter, "add">): VerifyContext {
  return {
    ...context,
    onVerdict: (credentialType, verdict) => {
      context.onVerdict(credentialType, verdict);
      add(verdict);
    },
  };
}
