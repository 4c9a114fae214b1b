import { join } from "node:path";
import type * as Client from "../../src/client/index.ts";
import { startDatabase } from "../faults/database.ts";
import { newRawKey } from "../support/conformance.ts";
import { type Serving, serve } from "../support/keyhold.ts";
import type { Json } from "../support/rest.ts";
import { CHECKOUT, migrate } from "./release.ts";

const ROOT_SECRET = "upgrade-root-secret-0123456789-abcdefghijklmn";

/** Fields of responses that release 0.1 does not know, and that it receives without asking for them. */
const NEW_FIELDS: Readonly<Record<string, readonly number[]>> = {
  // created_by
  "keyhold.v2alpha1.IssuedApiKey": [19],
  "keyhold.v2alpha1.ImportedApiKey": [19],
  // claims
  "keyhold.v2alpha1.VerifyApiKeyResponse": [14],
};

/**
 * Drives this server with the TypeScript client of release 0.1. Returns the failures: calls that do not work as they did, and responses
 * with fields that this client cannot read.
 */
export async function driveOldClient(dir: string, oldCheckout: string): Promise<string[]> {
  const database = await startDatabase(dir, (url, serverRole) => migrate(CHECKOUT, url, serverRole));
  let server: Serving | undefined;
  try {
    server = await serve({ KEYHOLD_DATABASE_URL: database.url(database.port), KEYHOLD_ROOT_SECRET: ROOT_SECRET });
    const client: typeof Client = await import(join(oldCheckout, "src/client/index.ts"));
    return await drive(client, server.url);
  } finally {
    server?.kill("SIGTERM");
    await server?.ended;
    await database.stop();
  }
}

async function drive(client: typeof Client, baseUrl: string): Promise<string[]> {
  const { createKeyholdClient, KeyStatus, RevocationReason, TokenAlgorithm, VerificationError } = client;
  const failures: string[] = [];
  const check = (name: string, found: Json, expected: Json) => {
    const [is, should] = [found, expected].map((value) => JSON.stringify(value));
    if (is !== should) failures.push(`client of 0.1: ${name}: ${is}, not ${should}`);
  };
  const keyhold = createKeyholdClient({ baseUrl });
  /** Calls, and looks for fields that the client does not know. */
  const read = async <T>(call: Promise<T>): Promise<T> => {
    const response = await call;
    for (const field of unknownFields(response)) failures.push(`client of 0.1: unknown field ${field}`);
    return response;
  };
  const verdictOn = async (credential: string) => {
    const { isValid, errorCode } = await read(keyhold.apiKeys.verifyApiKey({ credential }));
    return isValid || (errorCode !== undefined && VerificationError[errorCode]);
  };

  const create = { name: "old", actorId: "old", scopes: ["read", "write"], metadata: { env: "prod" }, ttl: "30d" };
  const { secret = "", issuedApiKey } = await read(keyhold.issuedApiKeys.createIssuedApiKey(create));
  const keyId = issuedApiKey?.keyId ?? "";
  check("create", [issuedApiKey?.status, issuedApiKey?.scopes], [KeyStatus.ACTIVE, create.scopes]);
  check("verify", await verdictOn(secret), true);

  const listed = await read(keyhold.issuedApiKeys.listIssuedApiKeys({ filter: 'actor_id="old"' }));
  check("list", [listed.issuedApiKeys.map((key) => key.keyId), listed.nextPageToken], [[keyId], ""]);
  const got = await read(keyhold.issuedApiKeys.getIssuedApiKey({ keyId }));
  check("get", [got.name, got.metadata, got.hint], [create.name, create.metadata, issuedApiKey?.hint]);

  // As a client does that changes what it has read: the fields that it does not know are in the request too.
  const renamed = { issuedApiKey: { ...got, name: "renamed" } };
  const mask = { paths: ["*"] };
  const updated = await read(keyhold.issuedApiKeys.updateIssuedApiKey({ ...renamed, updateMask: mask }));
  check("update", [updated.name, updated.scopes, expiryOf(updated)], ["renamed", create.scopes, expiryOf(got)]);

  const derivation = { credential: secret, algorithm: TokenAlgorithm.JWT, scopes: ["read"], customClaims: { t: 1 } };
  const { token } = await read(keyhold.apiKeys.deriveToken(derivation));
  check("derive", [token?.scopes, token?.claims], [["read"], { t: 1 }]);
  check("verify a token", await verdictOn(token?.token ?? ""), true);

  const rotated = await read(keyhold.issuedApiKeys.rotateIssuedApiKey({ keyId, gracePeriod: "1h" }));
  check("rotate", [rotated.issuedApiKey?.keyId, await verdictOn(rotated.secret ?? "")], [keyId, true]);

  const importing = { name: "old", actorId: "old", rawKey: newRawKey() };
  const imported = await read(keyhold.importedApiKeys.createImportedApiKey(importing));
  check("import", [imported.status, await verdictOn(importing.rawKey)], [KeyStatus.ACTIVE, true]);
  const requests = [secret, importing.rawKey, "unknown"].map((credential) => ({ credential }));
  const { results } = await read(keyhold.apiKeys.batchVerifyApiKeys({ requests }));
  check(
    "batchVerify",
    results.map(({ isValid }) => isValid),
    [true, true, false],
  );
  await read(keyhold.importedApiKeys.deleteImportedApiKey({ keyId: imported.keyId }));
  check("delete", await verdictOn(importing.rawKey), "NOT_FOUND");

  const revoked = await read(keyhold.apiKeys.revokeApiKey({ keyId, reason: RevocationReason.SUPERSEDED }));
  check("revoke", [revoked.status, revoked.revocationReason], [KeyStatus.REVOKED, RevocationReason.SUPERSEDED]);
  for (const one of [secret, token?.token ?? "", rotated.secret ?? ""])
    check("verify after the revocation", await verdictOn(one), "REVOKED");
  const again = keyhold.apiKeys.revokeApiKey({ keyId });
  check("revoke again", await again.catch(client.errorReason), "API_KEY_ALREADY_REVOKED");
  return failures;
}

function expiryOf({ expireTime }: Client.IssuedApiKey): string {
  return String(expireTime?.seconds);
}

/** Returns the fields of a message, also inside others, that its schema does not have, except those that are new. */
function unknownFields(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(unknownFields);
  if (typeof value !== "object" || value === null) return [];
  const { $typeName, $unknown = [], ...members }: Json = value;
  const known = NEW_FIELDS[$typeName] ?? [];
  const others: number[] = $unknown.map(({ no }: { no: number }) => no).filter((no: number) => !known.includes(no));
  return [...others.map((no) => `${no} of ${$typeName}`), ...Object.values(members).flatMap(unknownFields)];
}
