import {
  CreateIssuedApiKeyResponseSchema,
  IssuedApiKeySchema,
} from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { KeyholdError } from "../../domain/errors.ts";
import { restJson } from "../output.ts";
import { openRemote, type RemoteOptions } from "../remote.ts";
import { outputSecret, type SecretOptions } from "../secret-output.ts";
import { pairs } from "./option-values.ts";

export interface IssueOptions extends RemoteOptions, SecretOptions {
  readonly name: string;
  readonly actor: string;
  readonly scope?: string[];
  readonly ttl?: string;
  readonly metadata?: readonly string[];
  readonly requestId?: string;
}

export async function issue(options: IssueOptions): Promise<void> {
  const { name, actor: actorId, scope: scopes = [], ttl, requestId } = options;
  const request = { name, actorId, scopes, ttl, requestId, metadata: pairs("--metadata", options.metadata) };
  const { issuedApiKeys } = await openRemote(options);
  await outputSecret(options, async () => {
    const answer = await issuedApiKeys.createIssuedApiKey(request);
    const { secret, issuedApiKey } = answer;
    if (secret === undefined || issuedApiKey === undefined) throw repeatedRequest(issuedApiKey?.keyId);
    return {
      secret,
      answer: restJson(CreateIssuedApiKeyResponseSchema, answer),
      record: restJson(IssuedApiKeySchema, issuedApiKey),
    };
  });
}

/** A repeated request returns the key without its secret (AIP-155). */
function repeatedRequest(keyId = ""): KeyholdError {
  const description = `key ${keyId} was already created with it; its secret cannot be shown again: rotate it`;
  return new KeyholdError("REQUEST_ID_REUSED", `--request-id: ${description}`, { metadata: { key_id: keyId } });
}
