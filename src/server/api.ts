import type { FastifyBaseLogger } from "fastify";
import type { ApiContext } from "../api/row.ts";
import { permittedRpcs } from "../api/v2alpha1/rpcs.ts";
import type { Principal } from "../domain/principal.ts";
import type { Verdict } from "../domain/verdict.ts";
import type { Adopter } from "../hashing/adopter.ts";
import { andThen } from "../lib/maybe-promise.ts";
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
    failures: null,
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
  server: Pick<ApiContext, "admitChange" | "auditFeed" | "keyPages" | "webhooks" | "onDenied" | "isStopping">,
  usage: Pick<UsageCounter, "add"> | null = null,
): ApiContext {
  const { clock, random } = keys;
  const strict = strictly(context);
  const count = (verdict: Verdict): Verdict => {
    usage?.add(verdict);
    return verdict;
  };
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
      andThen(verify(of(context, caller), credential, mode, presentation, caller), count),
    verifyStrictly: (caller, credential, presentation) =>
      verify(of(strict, caller), credential, "default", presentation, caller),
    verifyReserved: (caller, credential) =>
      verify(of(reserved({ ...strict, failures: null }, reader), caller), credential, "default", undefined, caller),
    // Nothing is counted of a batch that fails.
    verifyAll: (caller, requests, mode) =>
      andThen(verifyAll(of(context, caller), requests, mode, caller), (verdicts) => {
        for (const verdict of verdicts) count(verdict);
        return verdicts;
      }),
    explain: (caller, subject, presentation) =>
      explain(of({ ...strict, charge: context.charge }, caller), subject, presentation),
    jwks: signing.jwks,
    permittedRpcs,
    ...server,
  };
}
