import { randomBytes } from "node:crypto";
import postgres, { type Sql } from "postgres";
import { afterAll, beforeAll, expect } from "vitest";
import { type Answer, issue, type Json, paths, type RestClient, restClient } from "./rest.ts";
import { startTestServer, type TestServer } from "./server.ts";

/** The real service for a test file. Its properties are available within tests and hooks only. */
export interface Suite {
  readonly server: TestServer;
  readonly rest: RestClient;
  /** Two connections to the service's database as its owner, to change stored times, lock and rename. */
  readonly sql: Sql;
}

/** Starts the service before the tests of the file and stops it after them. */
export function useService(environment: Record<string, string> = {}): Suite {
  let server: TestServer | undefined;
  let sql: Sql | undefined;
  beforeAll(async () => {
    server = await startTestServer(environment);
    sql = postgres(server.ownerUrl, { max: 2 });
  });
  afterAll(async () => {
    await sql?.end();
    await server?.close();
  });
  const started = <T>(value: T | undefined): T => {
    if (value === undefined) throw new Error("the service has not started");
    return value;
  };
  return {
    get server() {
      return started(server);
    },
    get sql() {
      return started(sql);
    },
    rest: (...request) => restClient(started(server))(...request),
  };
}

/** Returns a table of cases. Throws if it is empty, since it would test nothing. */
export function table<T>(rows: readonly T[]): readonly T[] {
  if (rows.length === 0) throw new Error("the table has no cases");
  return rows;
}

export const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
export const RFC_3339_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/;
export const ISSUED_SECRET = /^kh_v1_[0-9A-Za-z]{94}$/;
/** A well-formed key_id of no key. */
export const UNKNOWN_KEY_ID = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10";

/** Returns a unique raw key. */
export function newRawKey(): string {
  return `legacy-${randomBytes(12).toString("hex")}`;
}

/** Returns a path with a URL-encoded query. */
export function withQuery(path: string, query: Record<string, string>): string {
  return `${path}?${new URLSearchParams(query)}`;
}

/** Returns the milliseconds from one RFC 3339 time to another. */
export function between(from: string, to: string): number {
  return Date.parse(to) - Date.parse(from);
}

/** Imports a key and returns its record and raw key. */
export async function importKey(
  rest: RestClient,
  fields: Record<string, unknown> = {},
): Promise<{ rawKey: string; keyId: string; record: Json }> {
  const body = { raw_key: newRawKey(), name: "a key", actor_id: "actor_1", ...fields };
  const record = succeeded(await rest("POST", paths.imported, body));
  return { rawKey: body.raw_key, keyId: record.key_id, record };
}

/** A key of either kind. */
export interface MadeKey {
  readonly keyId: string;
  /** Its secret or raw key. */
  readonly credential: string;
  readonly record: Json;
}

/** A kind of key with its collection. */
export interface KeyKind {
  readonly kind: "issued" | "imported";
  readonly path: string;
  /** The collection of the other kind. */
  readonly otherPath: string;
  /** The member of a request that has the key. */
  readonly resource: string;
  /** Returns the required fields of a creation. */
  required(): Json;
  make(fields?: Json): Promise<MadeKey>;
}

/** Returns both kinds, for cases that hold for each. */
export function keyKinds(rest: RestClient): readonly KeyKind[] {
  const required = () => ({ name: "a key", actor_id: "actor_1" });
  return [
    {
      ...{ kind: "issued", path: paths.issued, otherPath: paths.imported, resource: "issued_api_key", required },
      make: async (fields) => {
        const { secret: credential, ...key } = await issue(rest, fields);
        return { ...key, credential };
      },
    },
    {
      ...{ kind: "imported", path: paths.imported, otherPath: paths.issued, resource: "imported_api_key" },
      required: () => ({ ...required(), raw_key: newRawKey() }),
      make: async (fields) => {
        const { rawKey: credential, ...key } = await importKey(rest, fields);
        return { ...key, credential };
      },
    },
  ];
}

/** Returns the keys of a page of either kind. */
export function recordsOf(page: Json): Json[] {
  return page.issued_api_keys ?? page.imported_api_keys;
}

/** Derives a token and returns the token message. */
export async function derive(
  rest: RestClient,
  credential: string,
  fields: Record<string, unknown> = {},
): Promise<Json> {
  const body = { credential, algorithm: "TOKEN_ALGORITHM_JWT", ...fields };
  return succeeded(await rest("POST", `${paths.keys}:derive`, body)).token;
}

export async function revoke(rest: RestClient, keyId: string, fields: Record<string, unknown> = {}): Promise<Json> {
  const body = { reason: "REVOCATION_REASON_KEY_COMPROMISE", ...fields };
  return succeeded(await rest("POST", `${paths.keys}/${keyId}:revoke`, body));
}

/** Sets the expiry of a key to the past. */
export async function expire(suite: Suite, keyId: string): Promise<void> {
  const { count } = await suite.sql`
    UPDATE api_keys SET expire_time = date_trunc('milliseconds', now() - interval '1 second') WHERE key_id = ${keyId}`;
  if (count !== 1) throw new Error(`key ${keyId} does not exist`);
  await rereadKey(suite, keyId);
}

/** A server is not notified of changes that bypass the triggers. A rejected change makes it read the key again. */
async function rereadKey({ sql, rest }: Suite, keyId: string): Promise<void> {
  const [row] = await sql`SELECT kind FROM api_keys WHERE key_id = ${keyId}`;
  const other = row?.kind === "issued" ? paths.imported : paths.issued;
  expect((await rest("POST", `${other}/${keyId}:revoke`, {})).status).toBe(404);
}

/** Ends the grace periods of all previous secrets of a key. */
export async function endGrace(suite: Suite, keyId: string): Promise<void> {
  const { count } = await suite.sql`
    UPDATE api_keys SET previous_secrets = (
      SELECT jsonb_agg(secret || jsonb_build_object('expire_time', now() - interval '1 second'))
      FROM jsonb_array_elements(previous_secrets) AS secret)
    WHERE key_id = ${keyId} AND jsonb_array_length(previous_secrets) > 0`;
  if (count !== 1) throw new Error(`key ${keyId} has no secret in its grace period`);
  await rereadKey(suite, keyId);
}

/** Expects status 200 and returns the body. */
export function succeeded({ status, body, text }: Answer): Json {
  expect({ status, text: status === 200 ? "" : text }).toEqual({ status: 200, text: "" });
  return body;
}

/** The expected error, except its message. */
export interface Expected {
  readonly code: number;
  readonly status: string;
  readonly reason: string;
  /** Metadata of the ErrorInfo; default: empty. */
  readonly metadata?: Json;
  /** Fields of the BadRequest, in order; without them there must be no BadRequest. */
  readonly fields?: readonly string[];
}

/** Returns a 400 that names these fields. */
export function invalid(...fields: string[]): Expected {
  return { code: 400, status: "INVALID_ARGUMENT", reason: "INVALID_ARGUMENT", fields };
}

export function notFound(keyId: string): Expected {
  return { code: 404, status: "NOT_FOUND", reason: "API_KEY_NOT_FOUND", metadata: { key_id: keyId } };
}

/** Returns a 409 for a key whose state does not allow the call. */
export function precondition(reason: string, keyId: string): Expected {
  return { code: 409, status: "FAILED_PRECONDITION", reason, metadata: { key_id: keyId } };
}

/** Returns a 401 for an invalid credential in the body. */
export function badCredential(errorCode: string): Expected {
  const metadata = { error_code: `VERIFICATION_ERROR_${errorCode}` };
  return { code: 401, status: "UNAUTHENTICATED", reason: "CREDENTIAL_INVALID", metadata, fields: ["credential"] };
}

export function alreadyExists(reason: string, field: string): Expected {
  return { code: 409, status: "ALREADY_EXISTS", reason, fields: [field] };
}

/** Compares the complete error body, except the message. */
export function expectRefused(answer: Answer, { code, status, reason, metadata = {}, fields = [] }: Expected): void {
  const text = expect.stringMatching(/./);
  const errorInfo = { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason, domain: "keyhold", metadata };
  const badRequest = {
    "@type": "type.googleapis.com/google.rpc.BadRequest",
    field_violations: fields.map((field) => expect.objectContaining({ field, description: text })),
  };
  const retryInfo = { "@type": "type.googleapis.com/google.rpc.RetryInfo", retry_delay: "1s" };
  const details = [
    errorInfo,
    ...(fields.length === 0 ? [] : [badRequest]),
    ...(status === "UNAVAILABLE" ? [retryInfo] : []),
  ];
  expect(answer.body).toEqual({ error: { code, message: text, status, details } });
  expect(answer.status).toBe(code);
  expect(answer.headers.get("content-type")).toMatch(/^application\/json(?:;|$)/);
}
