import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
  CreateIssuedApiKeyRequestSchema,
  CreateIssuedApiKeyResponseSchema,
  IssuedApiKeySchema,
} from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { issuedApiKey } from "../api/v2alpha1/key-resources.ts";
import { parseValid } from "../api/validation.ts";
import { ADMIN_SCOPE, ADMIN_SCOPES, isAdminScope } from "../domain/admin-scopes.ts";
import { invalidArgument } from "../domain/errors.ts";
import { type Lifetimes, newExpiry, UNLIMITED } from "../domain/expiry.ts";
import { localOperator, type Principal } from "../domain/principal.ts";
import { issueKey, parseNewIssue } from "../keys/issue.ts";
import { getKey } from "../keys/read.ts";
import { updateKey } from "../keys/update.ts";
import { processUser } from "../lib/node-name.ts";
import { writeServerLog } from "../postgres/connection/server-log.ts";
import { withResources } from "./command.ts";
import type { IssueOptions } from "./keys/create.ts";
import { ipRestrictionTo } from "./options.ts";
import type { OutputOptions } from "./output.ts";
import { writeMessage } from "./rest-json.ts";
import { outputSecret, type SecretOptions } from "./secret-output.ts";

type AdminTokenOptions = Pick<
  IssueOptions,
  "name" | "scope" | "actor" | "restrictTo" | "ttl" | "allowIp" | keyof SecretOptions
>;

/** The lifetime of a token that does not expire. */
const NO_EXPIRY = "none";

/** In milliseconds, so that a forgotten token expires. */
const DEFAULT_TTL = 90 * 86_400_000;

/** Returns the lifetimes of keys with that of a token without `--ttl` as the default. */
function lifetimesFor(ttl: string | undefined, { maxKeyTtl }: Lifetimes): Lifetimes {
  if (ttl !== NO_EXPIRY) return { maxKeyTtl, defaultKeyTtl: Math.min(DEFAULT_TTL, maxKeyTtl ?? DEFAULT_TTL) };
  if (maxKeyTtl === null) return UNLIMITED;
  throw invalidArgument("--ttl", 'must not be "none": KEYHOLD_MAX_KEY_TTL limits the lifetime of keys', "OUT_OF_RANGE");
}

/** Creates an admin token. Only the secret goes to standard output, for scripts. */
export async function createAdminToken(options: AdminTokenOptions): Promise<void> {
  const { name, scope = [ADMIN_SCOPE], actor, restrictTo = [], ttl, allowIp } = options;
  if (!scope.every(isAdminScope)) throw invalidArgument("--scope", `must be one of ${ADMIN_SCOPES.join(", ")}`);
  const request = create(CreateIssuedApiKeyRequestSchema, {
    name,
    actorId: actor,
    scopes: [...scope],
    restrictedToActorIds: [...restrictTo],
    ttl: ttl === NO_EXPIRY ? undefined : ttl,
    ipRestriction: ipRestrictionTo(allowIp),
  });
  await withResources(({ keys, database }) =>
    outputSecret(options, async () => {
      const lifetimes = lifetimesFor(ttl, keys.lifetimes);
      const input = parseValid(CreateIssuedApiKeyRequestSchema, request, () =>
        parseNewIssue({ ...keys, lifetimes }, { ...request, rateLimits: [], quotas: [] }),
      );
      const { key, secret } = await issueKey(keys, operator(), input);
      await writeServerLog(database, "admin token created", { key_id: key.keyId, scopes: key.scopes });
      if (secret === null) throw new TypeError("no secret was returned for the new key");
      const record = create(IssuedApiKeySchema, issuedApiKey(key, keys.clock.now()));
      return { secret, answer: create(CreateIssuedApiKeyResponseSchema, { secret, issuedApiKey: record }), record };
    }),
  );
}

type RenewOptions = OutputOptions & { readonly ttl?: string };

/** Moves the expiry of an admin token that has not expired. Its secret stays the same, so its users need no new one. */
export async function renewAdminToken(keyId: string, { ttl, ...options }: RenewOptions): Promise<void> {
  await withResources(async ({ keys, database }) => {
    const principal = operator();
    const { scopes } = await getKey(keys, principal, "issued", keyId);
    if (!scopes.some(isAdminScope))
      throw invalidArgument("key_id", 'is not an admin token: the key has no "keyhold:…" scope');
    const lifetimes = lifetimesFor(ttl, keys.lifetimes);
    const expiry = newExpiry({ ttl: ttl === NO_EXPIRY ? undefined : ttl }, lifetimes, keys.clock.now());
    const key = await updateKey(keys, principal, { keyId, kind: "issued" }, { expiry });
    await writeServerLog(database, "admin token renewed", { key_id: keyId, expire_time: key.expireTime });
    await writeMessage(create(IssuedApiKeySchema, issuedApiKey(key, keys.clock.now())), options);
  });
}

function operator(): Principal {
  return localOperator(processUser(), randomUUID());
}
