import { beforeAll, expect } from "vitest";
import { ADMIN_SCOPES, type AdminScope } from "../../src/domain/admin-scopes.ts";
import { type Expected, expectRefused, type Suite, useService } from "./conformance.ts";
import { type Answer, issue, type RestClient, restClient } from "./rest.ts";

/** The service with authentication for a test file. Its properties are available within tests and hooks only. */
export interface GuardedSuite extends Suite {
  /** A client with `keyhold:admin`. */
  readonly rest: RestClient;
  /** Returns a client with this bearer credential; null: without one. */
  as(credential: string | null): RestClient;
  /** Returns an admin token with only this scope. */
  token(scope: AdminScope): string;
}

/** Creates an admin token for each scope, then restarts the service, by default with `KEYHOLD_AUTH=admin-token`. */
export function useGuardedService(environment: () => Record<string, string> = () => ({})): GuardedSuite {
  const suite = useService();
  const tokens = new Map<AdminScope, string>();
  beforeAll(async () => {
    for (const scope of ADMIN_SCOPES) tokens.set(scope, (await issue(suite.rest, { scopes: [scope] })).secret);
    await suite.server.restart({ KEYHOLD_AUTH: "admin-token", ...environment() });
  });
  const token = (scope: AdminScope) => {
    const found = tokens.get(scope);
    if (found === undefined) throw new Error("the service has not started");
    return found;
  };
  const as =
    (credential: string | null): RestClient =>
    (...request) =>
      restClient(suite.server, credential === null ? {} : bearer(credential))(...request);
  return {
    get server() {
      return suite.server;
    },
    get sql() {
      return suite.sql;
    },
    rest: (...request) => as(token("keyhold:admin"))(...request),
    as,
    token,
  };
}

export function bearer(credential: string): Record<string, string> {
  return { authorization: `Bearer ${credential}` };
}

export function expectUnauthenticated(answer: Answer, message: RegExp): void {
  expectRefused(answer, { code: 401, status: "UNAUTHENTICATED", reason: "CALLER_UNAUTHENTICATED" });
  expect(answer.body.error.message).toMatch(message);
  expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer realm="keyhold"/);
}

/** The refusal of a caller whose credential has not this scope. */
export function lacking(scope: string): Expected {
  return { code: 403, status: "PERMISSION_DENIED", reason: "CALLER_NOT_PERMITTED", metadata: { scope } };
}
