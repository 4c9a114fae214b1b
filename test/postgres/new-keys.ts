import { randomBytes } from "node:crypto";
import { onTestFinished } from "vitest";
import type { KeyKind } from "../../src/domain/key.ts";
import type { NewKey } from "../../src/keys/ports.ts";
import { Pool } from "../../src/postgres/connection/pool.ts";
import { createTestDatabase } from "../support/postgres.ts";
import { operator } from "../support/principal.ts";

export interface NewKeyFields {
  readonly kind?: KeyKind;
  readonly name?: string;
  readonly scopes?: readonly string[];
  readonly metadata?: Readonly<Record<string, string>>;
  readonly expireTime?: Date | null;
  readonly digest?: Uint8Array;
  readonly otherDigests?: readonly Uint8Array[];
  readonly requestId?: string | null | undefined;
}

const CREATED = new Date("2026-01-02T03:04:05.678Z");

let made = 0;

/** Returns a unique key, except for the given fields. */
export function newKey(fields: NewKeyFields = {}): NewKey {
  const { kind = "imported", digest = randomBytes(32), otherDigests = [], requestId = null } = fields;
  const number = (++made).toString(16).padStart(12, "0");
  const key = {
    keyId: `0198b2a4-7d3e-7c52-a1f0-${number}`,
    kind,
    name: fields.name ?? `key ${made}`,
    actorId: "actor_1",
    scopes: fields.scopes ?? ["orders:read"],
    metadata: fields.metadata ?? { team: "payments" },
    hint: "legacy…beef",
    createTime: CREATED,
    updateTime: CREATED,
    expireTime: fields.expireTime ?? null,
    lastUsedTime: null,
    lastUsedAddress: null,
    previousSecrets: [],
    rotateTime: null,
    revokeTime: null,
    revocationReason: null,
    revocationDescription: null,
    disableTime: null,
    disableReason: null,
    allowedCidrs: null,
    restrictedToActorIds: null,
    rateLimits: null,
    quotas: null,
    createdBy: null,
    revokedBy: null,
    disabledBy: null,
    hashAlgorithm: null,
    adoptBeforeTime: null,
    adoptTime: null,
  };
  const request = requestId === null ? null : { requestId, fingerprint: randomBytes(32) };
  const others = otherDigests.map((other, place) => ({ keyId: `other${place}`, digest: other }));
  return { key, digest: { keyId: "k1", digest }, otherDigests: others, request, principal: operator };
}

/** A database with the current schema, dropped when the test ends. */
export async function openSchema(): Promise<{ url: string; ownerUrl: string; pool: Pool }> {
  const database = await createTestDatabase();
  const options = { url: database.url, maxConnections: 10, statementTimeout: 10_000, prepare: true };
  const pool = new Pool(options);
  onTestFinished(async () => {
    await pool.close();
    await database.drop();
  });
  return { url: database.url, ownerUrl: database.ownerUrl, pool };
}
