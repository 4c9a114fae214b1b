import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { KeyholdError } from "../../domain/errors.ts";
import { type CredentialOptions, readCredential } from "../credential-input.ts";
import { ipRestrictionTo } from "../options.ts";
import { openRemote, type RemoteOptions } from "../remote.ts";
import { writeMessage } from "../rest-json.ts";
import { outputSecret, type SecretOptions } from "../secret-output.ts";

export interface NewKeyOptions extends RemoteOptions {
  readonly name: string;
  readonly actor: string;
  readonly scope?: string[];
  readonly ttl?: string;
  readonly expireTime?: Timestamp;
  readonly allowIp?: string[];
  readonly metadata?: Record<string, string>;
  readonly requestId?: string;
}

export interface IssueOptions extends NewKeyOptions, SecretOptions {
  readonly restrictTo?: string[];
}

export async function issue(options: IssueOptions): Promise<void> {
  const { issuedApiKeys } = await openRemote(options);
  await outputSecret(options, async () => {
    const restrictedToActorIds = options.restrictTo ?? [];
    const answer = await issuedApiKeys.createIssuedApiKey({ ...fieldsOf(options), restrictedToActorIds });
    const { secret, issuedApiKey } = answer;
    if (secret === undefined) throw repeatedRequest(issuedApiKey?.keyId);
    return { secret, answer, record: issuedApiKey };
  });
}

/** A repeated request returns the key without its secret (AIP-155). */
function repeatedRequest(keyId = ""): KeyholdError {
  const description = `key ${keyId} was already created with it; its secret cannot be shown again: rotate it`;
  return new KeyholdError("REQUEST_ID_REUSED", `--request-id: ${description}`, { metadata: { key_id: keyId } });
}

/** Imports one key. The raw key is a secret, so it is read from stdin or a file. */
export async function importOne(options: NewKeyOptions & CredentialOptions): Promise<void> {
  const { importedApiKeys } = await openRemote(options);
  const rawKey = await readCredential(options, "Raw key");
  await writeMessage(await importedApiKeys.createImportedApiKey({ ...fieldsOf(options), rawKey }), options);
}

function fieldsOf({ name, actor, scope = [], ttl, expireTime, allowIp, metadata = {}, requestId }: NewKeyOptions) {
  const ipRestriction = ipRestrictionTo(allowIp);
  return { name, actorId: actor, scopes: scope, ttl, expireTime, ipRestriction, metadata, requestId };
}

export interface RotateOptions extends RemoteOptions, SecretOptions {
  readonly gracePeriod?: string;
}

export async function rotate(keyId: string, options: RotateOptions): Promise<void> {
  const { issuedApiKeys } = await openRemote(options);
  await outputSecret(options, async () => {
    const answer = await issuedApiKeys.rotateIssuedApiKey({ keyId, gracePeriod: options.gracePeriod });
    return { secret: answer.secret, answer, record: answer.issuedApiKey };
  });
}
