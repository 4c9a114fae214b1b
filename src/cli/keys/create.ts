import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { rawKeyWarnings } from "../../credential/header-form.ts";
import { KeyholdError } from "../../domain/errors.ts";
import { type CredentialOptions, readCredential } from "../credential-input.ts";
import { type HashOptions, readHashDefaults } from "../hash-options.ts";
import type { QuotaOption, RateLimitOption } from "../limit-options.ts";
import { ipRestrictionTo } from "../options.ts";
import { note } from "../output.ts";
import { openRemote, type RemoteOptions } from "../remote.ts";
import { writeMessage } from "../rest-json.ts";
import { outputSecret, type SecretOptions } from "../secret-output.ts";
import { assertWaitFits, endGraceWhenIdle } from "./wait-idle.ts";

export interface NewKeyOptions extends RemoteOptions {
  readonly name: string;
  readonly actor: string;
  readonly scope?: string[];
  readonly ttl?: string;
  readonly expireTime?: Timestamp;
  readonly allowIp?: string[];
  readonly rateLimit?: RateLimitOption[];
  readonly quota?: QuotaOption[];
  readonly metadata?: Record<string, string>;
  readonly requestId?: string;
}

export type IssueOptions = NewKeyOptions & SecretOptions & { readonly restrictTo?: string[] };

export async function issue(options: IssueOptions): Promise<void> {
  const { issuedApiKeys } = await openRemote(options);
  await outputSecret(options, async () => {
    const restrictedToActorIds = options.restrictTo ?? [];
    const answer = await issuedApiKeys.createIssuedApiKey({ ...fieldsOf(options), restrictedToActorIds });
    const { secret, issuedApiKey } = answer;
    if (secret === undefined) throw repeatedRequest(issuedApiKey?.keyId);
    return { secret, answer, record: issuedApiKey ?? answer };
  });
}

/** A repeated request returns the key without its secret (AIP-155). */
function repeatedRequest(keyId = ""): KeyholdError {
  const description = `key ${keyId} was already created with this request id; its secret cannot be shown again: rotate the key`;
  return new KeyholdError("REQUEST_ID_REUSED", `--request-id: ${description}`, { metadata: { key_id: keyId } });
}

interface ImportOneOptions extends NewKeyOptions, CredentialOptions, HashOptions {
  readonly allowWeak?: boolean;
  /** Whether the input is a hash with its salt and parameters. */
  readonly phc?: true;
  readonly lookupPrefix?: string;
}

/** Imports one key. The raw key is a secret, and so is its hash: they are read from stdin or a file. */
export async function importOne(options: ImportOneOptions): Promise<void> {
  const { importedApiKeys } = await openRemote(options);
  const { lookupPrefix, allowWeak = false } = options;
  const request = { ...fieldsOf(options), ...(await inputOf(options)), lookupPrefix, allowWeak };
  for (const warning of rawKeyWarnings(request.rawKey ?? "")) note(warning);
  await writeMessage(await importedApiKeys.createImportedApiKey(request), options);
}

/** Returns the raw key, or its hash if an option says how it was made. */
async function inputOf(options: ImportOneOptions) {
  const { phc, hashAlgorithm, hashEncoding, hmacKeyId, adoptBeforeTime } = options;
  if (phc === undefined && (hashAlgorithm ?? hashEncoding ?? hmacKeyId) === undefined) {
    return { rawKey: await readCredential(options, "Raw key"), adoptBeforeTime };
  }
  const defaults = await readHashDefaults(options);
  const hash = await readCredential(options, "Hash");
  const { toRawKeyHash } = await import("../import/row-request.ts");
  return { rawKeyHash: toRawKeyHash(phc === true ? { phc: hash } : { value: hash }, defaults), adoptBeforeTime };
}

function fieldsOf({ name, actor, scope = [], ttl, expireTime, allowIp, metadata = {}, ...others }: NewKeyOptions) {
  const { requestId, rateLimit: rateLimits, quota: quotas } = others;
  const ipRestriction = ipRestrictionTo(allowIp);
  return {
    name,
    actorId: actor,
    scopes: scope,
    ttl,
    expireTime,
    ipRestriction,
    rateLimits,
    quotas,
    metadata,
    requestId,
  };
}

type RotateOptions = RemoteOptions & SecretOptions & { readonly gracePeriod?: string; readonly waitIdle?: string };

/** Rotates a key. With `waitIdle`, the new secret is printed before the wait. */
export async function rotate(keyId: string, { gracePeriod, waitIdle, ...options }: RotateOptions): Promise<void> {
  if (waitIdle !== undefined) assertWaitFits({ waitIdle, gracePeriod });
  const { issuedApiKeys } = await openRemote(options);
  await outputSecret(options, async () => {
    const answer = await issuedApiKeys.rotateIssuedApiKey({ keyId, gracePeriod });
    return { secret: answer.secret, answer, record: answer.issuedApiKey ?? answer };
  });
  if (waitIdle !== undefined) await endGraceWhenIdle(keyId, { ...options, waitIdle });
}
