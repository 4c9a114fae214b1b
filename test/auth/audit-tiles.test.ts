import { expect, test } from "vitest";
import { ADMIN_SCOPES } from "../../src/domain/admin-scopes.ts";
import { bearer, useGuardedService } from "../support/guarded.ts";
import { issue } from "../support/rest.ts";

const suite = useGuardedService();

const statuses = async (headers: Record<string, string>) => {
  const paths = ["checkpoint", "tile/0/000.p/1", "tile/entries/000.p/1", "tile/9/000"];
  const answers = paths.map((path) => fetch(`${suite.server.url}/v2alpha1/audit/${path}`, { headers }));
  return (await Promise.all(answers)).map(({ status }) => status);
};

test("the tree requires the scope keyhold:audit", async () => {
  // From then on, the tree has events.
  await statuses(bearer(suite.token("keyhold:audit")));
  for (const scope of ADMIN_SCOPES) {
    const isPermitted = scope === "keyhold:audit" || scope === "keyhold:admin";
    expect({ scope, statuses: await statuses(bearer(suite.token(scope))) }).toEqual({
      ...{ scope, statuses: isPermitted ? [200, 200, 200, 404] : [403, 403, 403, 403] },
    });
  }
  expect(await statuses({})).toEqual([401, 401, 401, 401]);
});

test("a caller that is restricted to actors cannot read the tree", async () => {
  const restricted = { scopes: ["keyhold:audit"], restricted_to_actor_ids: ["team"] };
  const { secret } = await issue(suite.rest, restricted);
  expect(await statuses(bearer(secret))).toEqual([403, 403, 403, 403]);
});
