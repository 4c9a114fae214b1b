import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ApiKeysService } from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { IssuedApiKeysService } from "../../gen/keyhold/v2alpha1/issued_api_keys_pb.js";
import { UsageCounter } from "../../src/usage/counter.ts";
import { openRpcs, rpcCaller } from "../in-process/rpcs.ts";

/**
 * `node bench/usage/verify.ts`: prints the CPU time of cached verifications in this process, without a transport, with and without usage, and
 * their ratio. A transport adds the same to both.
 */

const KEYS = 2_000;
const CALLS = 40_000;
const ROUNDS = 12;

const dataDir = await mkdtemp(join(tmpdir(), "keyhold-verify-"));
process.env.KEYHOLD_DATA_DIR = dataDir;
const counter = new UsageCounter();
const counting = await openRpcs("reject", counter);
const plain = await openRpcs("attach");
const issue = rpcCaller(plain.rpcs)(IssuedApiKeysService.method.createIssuedApiKey);
const credentials: string[] = [];
for (let key = 0; key < KEYS; key++)
  credentials.push((await issue({ name: "n", actorId: "a", scopes: ["read"] })).secret ?? "");

const { verifyApiKey, batchVerifyApiKeys } = ApiKeysService.method;
const requests = credentials.slice(0, 1_000).map((credential) => ({ credential }));
for (const [name, one] of Object.entries({ single: verifyApiKey, "batch of 1000": batchVerifyApiKeys })) {
  const measure = async ({ rpcs }: typeof plain) => {
    const [single, batch] = [rpcCaller(rpcs)(verifyApiKey), rpcCaller(rpcs)(batchVerifyApiKeys)];
    const began = process.cpuUsage();
    if (one === verifyApiKey)
      for (let call = 0; call < CALLS; call++) await single({ credential: credentials[call % KEYS] ?? "" });
    else for (let call = 0; call < CALLS / 100; call++) await batch({ requests });
    counter.take();
    const { user, system } = process.cpuUsage(began);
    return (user + system) / (one === verifyApiKey ? CALLS : 10 * CALLS);
  };
  const rounds: [number, number][] = [];
  for (let round = 0; round < ROUNDS; round++) {
    // In alternating order, so that a machine that becomes slower favors neither.
    if (round % 2 === 0) rounds.push([await measure(counting), await measure(plain)]);
    else rounds.push((([off, on]) => [on, off] as [number, number])([await measure(plain), await measure(counting)]));
  }
  const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
  const [on, off] = [median(rounds.slice(2).map(([a]) => a)), median(rounds.slice(2).map(([, b]) => b))];
  const ratio = median(rounds.slice(2).map(([a, b]) => a / b));
  console.info(`${name}: ${on.toFixed(3)} µs with usage, ${off.toFixed(3)} without, ratio ${ratio.toFixed(3)}`);
}
await plain.close();
await counting.close();
await rm(dataDir, { recursive: true, force: true });
