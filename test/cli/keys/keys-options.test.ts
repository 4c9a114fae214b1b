import { expect, test } from "vitest";
import { importKey, newRawKey } from "../../support/conformance.ts";
import { issue, type Json, paths, restClient } from "../../support/rest.ts";
import { useKeysCommand } from "./keys-command.ts";

const { suite, keys, adminToken, answerOf, rest } = useKeysCommand();

test("creates admin tokens that are restricted to actors", async () => {
  const fields = ["--name", "support", "--scope", "keyhold:keys.revoke", "keyhold:keys.read"];
  const restriction = ["--restrict-to", "team_7", "team_8", "--json"];
  const { stdout } = await adminToken("create", ...fields, ...restriction);
  const { secret, issued_api_key: made } = JSON.parse(stdout);
  expect(made).toMatchObject({ actor_id: "admin", restricted_to_actor_ids: ["team_7", "team_8"] });
  const ofTeam = ["--actor", "team_7", "--restrict-to", "team_7", "--ttl", "30d"];
  const { issued_api_key: issued } = await answerOf(["issue", ...fields, ...ofTeam]);
  expect(issued).toMatchObject({ actor_id: "team_7", restricted_to_actor_ids: ["team_7"] });
  const own = restClient(suite.server, { authorization: `Bearer ${secret}` });
  expect((await own("GET", paths.issued)).body.issued_api_keys).toMatchObject([{ key_id: issued.key_id }]);
});

test("renews an admin token, whose secret stays the same", async () => {
  const admin = (...args: string[]) => adminToken(...args, "--json");
  const { secret, issued_api_key: made } = JSON.parse(
    (await admin("create", "--name", "gateway", "--ttl", "1h")).stdout,
  );
  const renew = async (...args: string[]) => JSON.parse((await admin("renew", made.key_id, ...args)).stdout);
  const daysLeft = ({ expire_time }: Json) => Math.round((Date.parse(expire_time) - Date.now()) / 86_400_000);
  expect([daysLeft(made), daysLeft(await renew()), daysLeft(await renew("--ttl", "7d"))]).toEqual([0, 90, 7]);
  expect(await renew("--ttl", "none")).not.toHaveProperty("expire_time");
  expect((await keys(["list", "--limit", "1"], undefined, { KEYHOLD_TOKEN: secret })).code).toBe(0);

  const { keyId } = await issue(rest());
  const other = await admin("renew", keyId);
  expect([other.code, JSON.parse(other.stderr).error.message]).toEqual([
    2,
    expect.stringMatching(/has no "keyhold:…" scope/),
  ]);
  await suite.sql`UPDATE api_keys SET expire_time = now() - interval '1 second' WHERE key_id = ${made.key_id}`;
  expect(await admin("renew", made.key_id)).toMatchObject({ code: 5, stderr: expect.stringContaining("expired") });
});

test("restricts keys to addresses, by --allow-ip", async () => {
  const draft = ["--name", "a bot", "--actor", "team_1", "--allow-ip", "203.0.113.0/24", "2001:DB8::/32"];
  const restricted = { ip_restriction: { allowed_cidrs: ["203.0.113.0/24", "2001:db8::/32"] } };
  const { secret, issued_api_key: key } = await answerOf(["issue", ...draft]);
  expect(key).toMatchObject(restricted);
  const raw = newRawKey();
  expect(await answerOf(["import", ...draft], raw)).toMatchObject(restricted);
  const elsewhere = await keys(["verify", "--json", "--client-ip", "192.0.2.1"], secret);
  expect(elsewhere.code).toBe(7);
  expect(JSON.parse(elsewhere.stdout)).toMatchObject({ error_code: "VERIFICATION_ERROR_IP_NOT_ALLOWED" });
  const moved = await answerOf(["update", key.key_id, "--allow-ip", "192.0.2.1"]);
  expect(moved).toMatchObject({ name: "a bot", ip_restriction: { allowed_cidrs: ["192.0.2.1/32"] } });
  expect(await answerOf(["update", key.key_id, "--allow-any-ip"])).not.toHaveProperty("ip_restriction");
  const wrong = await keys(["issue", ...draft, "--allow-ip", "203.0.113.1/24"]);
  expect([wrong.code, wrong.stderr]).toEqual([
    2,
    expect.stringContaining("--allow-ip: has host bits set to the right of the prefix /24"),
  ]);
});

test("an admin token is accepted from its addresses only", async () => {
  const args = ["--name", "elsewhere", "--allow-ip", "203.0.113.0/24", "--json"];
  const { secret, issued_api_key: key } = JSON.parse((await adminToken("create", ...args)).stdout);
  expect(key.ip_restriction).toEqual({ allowed_cidrs: ["203.0.113.0/24"] });
  const refused = await keys(["list"], undefined, { KEYHOLD_TOKEN: secret });
  expect([refused.code, refused.stderr]).toEqual([4, expect.stringContaining("the admin token is not valid")]);
});

test("a list of many pages is one array, up to the limit", async () => {
  const names = Array.from({ length: 7 }, (_, index) => `page ${index}`);
  for (const name of names) await issue(rest(), { name, actor_id: "team_pages" });
  const filter = ["--filter", 'actor_id="team_pages"', "--page-size", "3"];
  const nameOf = (key: Json) => key.name;
  expect((await answerOf(["list", ...filter])).map(nameOf)).toEqual(names.toReversed());
  expect((await answerOf(["list", ...filter, "--limit", "4"])).map(nameOf)).toEqual(names.toReversed().slice(0, 4));
  const { stdout } = await keys(["list", ...filter]);
  expect(stdout.split("\n").filter((line) => line.startsWith("NAME"))).toHaveLength(1);
});

test("lists both kinds, and combines the conditions of all options", async () => {
  const actor = 'team "*\\ 5';
  const fields = { actor_id: actor };
  const soon = (await issue(rest(), { ...fields, ttl: "7d" })).keyId;
  const later = (await issue(rest(), { ...fields, ttl: "90d" })).keyId;
  const imported = (await importKey(rest(), { ...fields, ttl: "7d" })).keyId;
  const young = (await issue(rest(), fields)).keyId;
  const revoked = (await issue(rest(), { ...fields, ttl: "7d" })).keyId;
  await rest()("POST", `${paths.keys}/${revoked}:revoke`, { reason: "REVOCATION_REASON_SUPERSEDED" });
  const old = `01000000${young.slice(8)}`;
  await suite.sql`
    UPDATE api_keys SET key_id = ${old}, create_time = create_time - interval '91 days' WHERE key_id = ${young}`;
  const idsOf = async (...args: string[]) =>
    (await answerOf(["list", "--actor", actor, ...args])).map((key: Json) => key.key_id);

  expect(await idsOf("--kind", "all")).toEqual([revoked, imported, later, soon, old]);
  expect(await idsOf("--imported")).toEqual([imported]);
  expect(await idsOf("--kind", "all", "--expiring-within", "30d", "--status", "active")).toEqual([soon, imported]);
  expect(await idsOf("--kind", "all", "--unused-for", "90d")).toEqual([old]);
  const newestFirst = ["--expiring-within", "30d", "--order-by", "create_time desc"];
  expect(await idsOf("--kind", "all", "--status", "active", ...newestFirst)).toEqual([imported, soon]);
  expect(await idsOf("--order-by", "expire_time desc")).toEqual([old, later, revoked, soon]);
  expect(await idsOf("--unused-for", "90d", "--filter", "expire_time:* OR status=KEY_STATUS_REVOKED")).toEqual([]);
  const { stdout } = await keys(["list", "--kind", "all", "--actor", actor, "--limit", "3"]);
  expect(stdout).toMatch(/EXPIRES +LAST USED +KIND\n.* ISSUED\n.* IMPORTED\n.* ISSUED\n$/);
});

test("sets limits of keys, shows what is left of them, and adjusts quotas", async () => {
  const draft = ["--name", "a bot", "--actor", "team_1"];
  const limits = ["--rate-limit", "requests=60/1m,burst=90", "exports=5/1h,on-demand,shadow,on-outage=allow"];
  const { secret, issued_api_key: key } = await answerOf([
    "issue",
    ...draft,
    ...limits,
    "--quota",
    "monthly=100/month",
  ]);
  expect(key.rate_limits).toMatchObject([
    { name: "requests", quota: 60, window: "60s", burst: 90, enforcement: "RATE_LIMIT_ENFORCEMENT_ENFORCED" },
    { name: "exports", window: "3600s", on_demand: true, enforcement: "RATE_LIMIT_ENFORCEMENT_SHADOW" },
  ]);
  expect(key.rate_limits[1].on_outage).toBe("OUTAGE_POLICY_ALLOW");
  expect(key.quotas).toMatchObject([{ name: "monthly", limit: 100, period: "QUOTA_PERIOD_MONTH" }]);
  expect((await keys(["verify", "--json"], secret)).code).toBe(0);
  expect(await answerOf(["adjust-quota", key.key_id, "monthly", "--add", "9"])).toMatchObject({ key_id: key.key_id });
  await answerOf(["adjust-quota", key.key_id, "monthly", "--subtract", "3"]);
  const { stdout } = await keys(["limits", key.key_id]);
  expect(stdout).toMatch(
    /^LIMIT +QUOTA +REMAINING +RESET\nrequests +60\/60s +\d+ .*\n(exports .*\n)?monthly +100\/month +93 /,
  );
  const updated = await answerOf(["update", key.key_id, "--clear-rate-limits", "--quota", "daily=7/day"]);
  expect(updated).toMatchObject({ rate_limits: [], quotas: [{ name: "daily", limit: 7 }] });
  for (const wrong of [
    ["--rate-limit", "requests=60"],
    ["--rate-limit", "a=1/1m,fast"],
    ["--quota", "m=5/decade"],
  ]) {
    const { code, stderr } = await keys(["issue", ...draft, ...wrong]);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`${wrong[0]}: must have the form name=`)]);
  }
});
