import { randomBytes } from "node:crypto";
import postgres, { type Sql } from "postgres";
import { afterAll, beforeAll, expect } from "vitest";
import { type Answer, type Json, paths, type RestClient, restClient } from "./rest.ts";
import { startTestServer, type TestServer } from "./server.ts";

/** The real service for one file of tests. To be read within a test or a hook only. */
export interface Suite {
  readonly server: TestServer;
  readonly rest: RestClient;
  /** The service's own database as its owner, who may do more: to move time by changing what is stored, to lock and to rename. */
  readonly sql: Sql;
}

/** Starts the service before the tests of the file and stops it after them. */
export function useService(environment: Record<string, string> = {}): Suite {
  let server: TestServer | undefined;
  let sql: Sql | undefined;
  beforeAll(async () => {
    server = await startTestServer(environment);
    sql = postgres(server.ownerUrl, { max: 1 });
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

/** A table of cases; an empty one would test nothing. */
export function table<T>(rows: readonly T[]): readonly T[] {
  if (rows.length === 0) throw new Error("a table without cases");
  return rows;
}

export const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
export const RFC_3339_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/;
export const ISSUED_SECRET = /^kh_v1_[0-9A-Za-z]{94}$/;
/** In the form of a key_id, and of no key. */
export const UNKNOWN_KEY_ID = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10";

/** A raw key that nobody else imports. */
export function newRawKey(): string {
  return `legacy-${randomBytes(12).toString("hex")}`;
}

/** A path with a query, URL-encoded. */
export function withQuery(path: string, query: Record<string, string>): string {
  return `${path}?${new URLSearchParams(query)}`;
}

/** Milliseconds from one RFC 3339 time to another. */
export function between(from: string, to: string): number {
  return Date.parse(to) - Date.parse(from);
}

/** Imports a key and answers its record with the raw key. */
export async function importKey(
  rest: RestClient,
  fields: Record<string, unknown> = {},
): Promise<{ rawKey: string; keyId: string; record: Json }> {
  const body = { raw_key: newRawKey(), name: "a key", actor_id: "actor_1", ...fields };
  const record = succeeded(await rest("POST", paths.imported, body));
  return { rawKey: body.raw_key, keyId: record.key_id, record };
}

/** Derives a token and answers what the service says of it. */
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

/** Moves the end of a key's life into the past. */
export async function expire(suite: Suite, keyId: string): Promise<void> {
  const { count } = await suite.sql`
    UPDATE api_keys SET expire_time = date_trunc('milliseconds', now() - interval '1 second') WHERE key_id = ${keyId}`;
  if (count !== 1) throw new Error(`there is no key ${keyId}`);
  await lookAgain(suite, keyId);
}

/** A server is not notified of changes that bypass the triggers. A change that it rejects makes it read the key again. */
async function lookAgain({ sql, rest }: Suite, keyId: string): Promise<void> {
  const [row] = await sql`SELECT kind FROM api_keys WHERE key_id = ${keyId}`;
  const other = row?.kind === "issued" ? paths.imported : paths.issued;
  expect((await rest("POST", `${other}/${keyId}:revoke`, {})).status).toBe(404);
}

/** Ends the grace of every older secret of a key. */
export async function endGrace(suite: Suite, keyId: string): Promise<void> {
  const { count } = await suite.sql`
    UPDATE api_keys SET previous_secrets = (
      SELECT jsonb_agg(secret || jsonb_build_object('expire_time', now() - interval '1 second'))
      FROM jsonb_array_elements(previous_secrets) AS secret)
    WHERE key_id = ${keyId} AND jsonb_array_length(previous_secrets) > 0`;
  if (count !== 1) throw new Error(`key ${keyId} has no secret in its grace`);
  await lookAgain(suite, keyId);
}

/** The body of an answer that must be 200. */
export function succeeded({ status, body, text }: Answer): Json {
  expect({ status, text: status === 200 ? "" : text }).toEqual({ status: 200, text: "" });
  return body;
}

/** What an error must say besides its message. */
export interface Expected {
  readonly code: number;
  readonly status: string;
  readonly reason: string;
  /** Of the ErrorInfo; empty unless given. */
  readonly metadata?: Json;
  /** Of the BadRequest, in order; without them there must be none. */
  readonly fields?: readonly string[];
}

/** 400 that names these fields. */
export function invalid(...fields: string[]): Expected {
  return { code: 400, status: "INVALID_ARGUMENT", reason: "INVALID_ARGUMENT", fields };
}

export function notFound(keyId: string): Expected {
  return { code: 404, status: "NOT_FOUND", reason: "API_KEY_NOT_FOUND", metadata: { key_id: keyId } };
}

/** 409 for a key whose state does not allow the call. */
export function precondition(reason: string, keyId: string): Expected {
  return { code: 409, status: "FAILED_PRECONDITION", reason, metadata: { key_id: keyId } };
}

/** 401 for a credential in the body that is not valid. */
export function badCredential(errorCode: string): Expected {
  const metadata = { error_code: `VERIFICATION_ERROR_${errorCode}` };
  return { code: 401, status: "UNAUTHENTICATED", reason: "CREDENTIAL_INVALID", metadata, fields: ["credential"] };
}

export function alreadyExists(reason: string, field: string): Expected {
  return { code: 409, status: "ALREADY_EXISTS", reason, fields: [field] };
}

/** Compares a whole error body, but for the wording. */
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
