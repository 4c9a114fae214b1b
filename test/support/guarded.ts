import { beforeAll } from "vitest";
import { ADMIN_SCOPES, type AdminScope } from "../../src/domain/admin-scopes.ts";
import { type Suite, useService } from "./conformance.ts";
import { issue, type RestClient, restClient } from "./rest.ts";

/** The service for one file of tests, which lets in only who has a credential. To be read within a test or a hook only. */
export interface GuardedSuite extends Suite {
  /** As someone who may do everything. */
  readonly rest: RestClient;
  /** As the holder of a bearer credential; null: of none. */
  as(credential: string | null): RestClient;
  /** An admin token with this scope alone. */
  token(scope: AdminScope): string;
}

/** Makes an admin token for each scope, then starts the service with `KEYHOLD_AUTH=admin-token`, unless another is given. */
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
