import {
  IssuedApiKeySchema,
  RotateIssuedApiKeyResponseSchema,
} from "../../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { restJson } from "../output.ts";
import { openRemote, type RemoteOptions } from "../remote.ts";
import { outputSecret, type SecretOptions } from "../secret-output.ts";

export interface RotateOptions extends RemoteOptions, SecretOptions {
  readonly gracePeriod?: string;
}

export async function rotate(keyId: string, options: RotateOptions): Promise<void> {
  const { issuedApiKeys } = await openRemote(options);
  await outputSecret(options, async () => {
    const answer = await issuedApiKeys.rotateIssuedApiKey({ keyId, gracePeriod: options.gracePeriod });
    const { secret, issuedApiKey } = answer;
    return {
      secret,
      answer: restJson(RotateIssuedApiKeyResponseSchema, answer),
      record: issuedApiKey === undefined ? {} : restJson(IssuedApiKeySchema, issuedApiKey),
    };
  });
}
