import { create } from "@bufbuild/protobuf";
import { CreateIssuedApiKeyRequestSchema } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { requireValid } from "../api/validation.ts";
import { ADMIN_SCOPE, ADMIN_SCOPES } from "../auth/policy.ts";
import { invalidArgument } from "../errors.ts";
import { fullAuthority } from "../keys/authority.ts";
import { issueKey } from "../keys/issue.ts";
import { withFoundation } from "./command.ts";

export interface AdminTokenOptions {
  readonly name: string;
  readonly scope?: readonly string[];
  readonly actor: string;
  readonly ttl?: string;
}

/** Makes an admin token. The secret alone goes to standard output, so that a script can keep it. */
export async function createAdminToken({ name, scope = [ADMIN_SCOPE], actor, ttl }: AdminTokenOptions): Promise<void> {
  const unknown = scope.find((one) => !ADMIN_SCOPES.some((known) => known === one));
  if (unknown !== undefined) throw invalidArgument("--scope", `${unknown} is not one of ${ADMIN_SCOPES.join(", ")}`);
  const request = create(CreateIssuedApiKeyRequestSchema, { name, actorId: actor, scopes: [...scope], ttl });
  requireValid(CreateIssuedApiKeyRequestSchema, request);
  await withFoundation(async ({ keys }) => {
    const { key, secret } = await issueKey(keys, request, fullAuthority);
    console.error(`Admin token ${key.keyId} with ${key.scopes.join(" ")}. It is shown this once:`);
    console.log(secret);
  });
}
