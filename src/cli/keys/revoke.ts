import { RevocationReason, RevocationReasonSchema } from "../../../gen/keyhold/v2alpha1/api_key_pb.js";
import { RevokeApiKeyResponseSchema } from "../../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { SelfRevokeApiKeyResponseSchema } from "../../../gen/keyhold/v2alpha1/self_service_pb.js";
import { invalidArgument } from "../../domain/errors.ts";
import { type CredentialOptions, readCredential } from "../credential-input.ts";
import { restJson, writeObject } from "../output.ts";
import { openRemote, type RemoteOptions } from "../remote.ts";
import { enumOf } from "./option-values.ts";

export interface RevokeOptions extends RemoteOptions, CredentialOptions {
  readonly reason?: string;
  readonly description?: string;
  readonly self?: boolean;
}

/** Revokes by key id or, with `--self`, by the key's own secret, without an admin token. */
export async function revoke(keyId: string | undefined, options: RevokeOptions): Promise<void> {
  const { self = false, credentialFile, description } = options;
  if (self === (keyId !== undefined)) throw invalidArgument("KEY_ID", "give a key id, or --self and the secret itself");
  if (credentialFile !== undefined && !self) throw invalidArgument("--credential-file", "goes with --self");
  if (description !== undefined && self) throw invalidArgument("--description", "cannot be used with --self");
  const reason = reasonOf(options);
  const remote = await openRemote(options);
  if (keyId === undefined) {
    const credential = await readCredential(options);
    const answer = await remote.selfService.selfRevokeApiKey({ credential, reason });
    return writeObject(restJson(SelfRevokeApiKeyResponseSchema, answer), options);
  }
  const answer = await remote.apiKeys.revokeApiKey({ keyId, reason, revocationDescription: description });
  return writeObject(restJson(RevokeApiKeyResponseSchema, answer), options);
}

function reasonOf({ reason }: RevokeOptions): RevocationReason {
  return reason === undefined
    ? RevocationReason.UNSPECIFIED
    : enumOf(RevocationReasonSchema, "REVOCATION_REASON_", reason);
}
