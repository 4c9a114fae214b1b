import { expect } from "vitest";
import { succeeded } from "../support/conformance.ts";
import { eventually } from "../support/keyhold.ts";
import { issue, type Json, paths, verify } from "../support/rest.ts";
import { type Receiver, startReceiver } from "../support/webhook-receiver.ts";
import type { ConsoleSuite } from "./console.ts";

/** Issued keys, the newest last. The weight is how many verifications there are at noon. */
const KEYS = [
  { weight: 0, name: "old laptop", actor_id: "team-support", scopes: ["tickets.read"], ttl: "30d" },
  { weight: 0, name: "Initech: trial", actor_id: "customer/initech", scopes: ["read"], ttl: "14d" },
  { weight: 12, name: "CI runner", actor_id: "team-platform", scopes: ["build", "deploy"], metadata: { env: "ci" } },
  { weight: 4, name: "nightly backup", actor_id: "team-platform", scopes: ["backup"], ttl: "1y" },
  { weight: 30, name: "telemetry gateway", actor_id: "team-platform", scopes: ["metrics.write"], ttl: "1y" },
  { weight: 9, name: "Globex: mobile app", actor_id: "customer/globex", scopes: ["read"], ttl: "20d" },
  { weight: 22, name: "Globex: production", actor_id: "customer/globex", scopes: ["read", "write"], ttl: "180d" },
  { weight: 3, name: "Acme: staging", actor_id: "customer/acme", scopes: ["read", "write"], ttl: "90d" },
  { weight: 40, name: "Acme: production", actor_id: "customer/acme", scopes: ["read", "write"], ttl: "1y" },
  { weight: 6, name: "support agent", actor_id: "team-support", scopes: ["tickets.read", "tickets.reply"], ttl: "30d" },
  { weight: 5, name: "nightly export", actor_id: "billing", scopes: ["invoices.read"], ttl: "5d" },
  { weight: 15, name: "invoice worker", actor_id: "billing", scopes: ["invoices.read", "invoices.write"], ttl: "180d" },
  { weight: 18, name: "deploy bot", actor_id: "team-platform", scopes: ["deploy", "read"], ttl: "90d" },
] as const;

export interface ExampleData {
  /** Ids of keys by their names. */
  readonly keyIds: Readonly<Record<(typeof KEYS)[number]["name"], string>>;
  /** The secret of `deploy bot`. */
  readonly secret: string;
  /** Place of the event in the audit log that revoked `old laptop`. */
  readonly revocationSeq: string;
}

/** Fills a server that may send webhooks to 127.0.0.1 with what that of a company could have. Times are relative to now. */
export async function addExampleData({ rest, sql }: ConsoleSuite): Promise<ExampleData> {
  const receivers = await addWebhooks(rest);
  for (const hmac_key_id of ["partner-portal", "legacy-2019"])
    succeeded(await rest("POST", paths.hmacKeys, { hmac_key_id, key: "a2V5", encoding: "TEXT_ENCODING_BASE64" }));
  await addLimits(rest);
  const keyIds: Record<string, string> = {};
  const addKey = async ({ weight: _, ...fields }: (typeof KEYS)[number]) => {
    const { keyId, secret } = await issue(rest, { metadata: { env: "prod" }, ...fields });
    keyIds[fields.name] = keyId;
    return secret;
  };
  const change = async (name: string, verb: string, body: Json) =>
    succeeded(await rest("POST", `${paths.keys}/${keyIds[name]}:${verb}`, body));
  const [laptop, trial, ...others] = KEYS;
  await addKey(laptop);
  await addKey(trial);
  await change(trial.name, "disable", { reason: "unpaid invoice" });
  const revocation_description = "found in a public repository";
  await change(laptop.name, "revoke", { reason: "REVOCATION_REASON_KEY_COMPROMISE", revocation_description });
  await settleWebhooks(rest, sql);
  for (const receiver of receivers) await receiver.close();
  let secret = "";
  for (const key of others) secret = await addKey(key);
  await verify(rest, secret);
  succeeded(await rest("POST", `${paths.issued}/${keyIds["invoice worker"]}:rotate`, { grace_period: "7d" }));
  await addUsage(sql, keyIds);
  const filter = encodeURIComponent(`key_id="${keyIds[laptop.name]}" AND action="key.revoked"`);
  const found = succeeded(await rest("GET", `${paths.auditEvents}?filter=${filter}`));
  return { keyIds: keyIds as ExampleData["keyIds"], secret, revocationSeq: found.audit_events[0].seq };
}

type Rest = ConsoleSuite["rest"];

const SIEM = { endpoint_id: "siem", event_types: ["key.revoked", "key.disabled"], description: "Security alerts" };
const TICKETS = { endpoint_id: "tickets", event_types: ["key.revoked"], description: "A ticket for each revocation" };

/** One endpoint receives what it is sent, the other fails. */
async function addWebhooks(rest: Rest): Promise<Receiver[]> {
  const receivers = [await startReceiver(), await startReceiver(() => 503)];
  for (const [index, endpoint] of [SIEM, TICKETS].entries())
    succeeded(await rest("POST", paths.webhookEndpoints, { ...endpoint, url: receivers[index]?.url }));
  return receivers;
}

/** Waits for the deliveries, and then shows the endpoints with other URLs, to which nothing more is sent. */
async function settleWebhooks(rest: Rest, sql: ConsoleSuite["sql"]): Promise<void> {
  for (const [{ endpoint_id }, count] of [
    [SIEM, 2],
    [TICKETS, 1],
  ] as const) {
    await eventually(async () => {
      const { body } = await rest("GET", `${paths.webhookEndpoints}/${endpoint_id}/deliveries`);
      const attempted = body.webhook_deliveries.filter(({ attempts }: Json) => attempts.length > 0);
      return attempted.length === count;
    });
    await sql`UPDATE webhook_endpoints SET url = ${`https://${endpoint_id}.acme.example/keyhold`} WHERE endpoint_id = ${endpoint_id}`;
  }
}

async function addLimits(rest: Rest): Promise<void> {
  const rate_limits = [{ name: "requests", quota: 600, window: "1m" }];
  const quotas = [{ name: "monthly", limit: 1_000_000, period: "QUOTA_PERIOD_MONTH" }];
  for (const actor of ["customer%2Facme", "customer%2Fglobex"]) {
    const path = `${paths.actors}/${actor}?update_mask=rate_limits,quotas`;
    expect(await rest("PATCH", path, { rate_limits, quotas })).toMatchObject({ status: 200 });
  }
}

const DAYS = 30;

/** What of 100 verifications is rejected, and why. */
const REJECTED = { INSUFFICIENT_SCOPE: 2, RATE_LIMITED: 3, EXPIRED: 1 };

/** Counts of 30 days: fewer at night and on Sundays, growing by a hundredth each day. */
async function addUsage(sql: ConsoleSuite["sql"], keyIds: Readonly<Record<string, string>>): Promise<void> {
  const hour = new Date().getUTCHours();
  const rows: string[] = [];
  for (let ago = DAYS - 1; ago >= 0; ago--) {
    const date = new Date(Date.now() - ago * 86_400_000);
    const day = date.toISOString().slice(0, 10);
    await sql`SELECT usage_live_partition(${day}::date)`;
    for (const { name, weight } of KEYS) {
      const valid = Array.from({ length: ago === 0 ? hour + 1 : 24 }, (_, at) =>
        Math.round(
          weight * (1 + Math.sin(((at - 6) / 12) * Math.PI)) * (date.getUTCDay() === 0 ? 0.4 : 1) * 0.99 ** ago,
        ),
      );
      const shares = weight > 8 ? { VALID: 100, ...REJECTED } : { VALID: 100 };
      for (const [outcome, share] of Object.entries(shares)) {
        const counts = valid.map((count) => Math.round((count * share) / 100));
        const sum = counts.reduce((total, count) => total + count, 0);
        const hours = `[0:${counts.length - 1}]={${counts.map((count) => count || "NULL").join(",")}}`;
        if (sum > 0) rows.push(`('${keyIds[name]}', ${sum}, '${day}', '${outcome}', '${hours}')`);
      }
    }
  }
  await sql.unsafe(`INSERT INTO key_usage (key_id, count, day, outcome, hours) VALUES ${rows.join(", ")}`);
  await sql`UPDATE usage_log SET first_day = least(first_day, (now() AT TIME ZONE 'UTC')::date - ${DAYS - 1}::int)`;
}
