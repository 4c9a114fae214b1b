import { verdictsOf } from "../../support/many-keys.ts";
import { issue, paths, restClient } from "../../support/rest.ts";
import type { Seeded } from "../../support/seeded.ts";
import type { Family } from "../case.ts";

/** Number of tokens at which the first one is revoked. */
const TOKENS = 200;

/** Calls of the revocation: a thousand times as many keys need no more. */
const MAX_CALLS = 10;

/** The token that creates the next one. */
const SHAPES: Readonly<Record<string, (count: number, random: Seeded) => number>> = {
  chain: (count) => count - 1,
  star: () => 0,
  "random tree": (count, random) => random.below(count),
};

/** Admin tokens that are created with each other by concurrent connections, while the first one is revoked with its descendants. */
export const chains: Family = {
  name: "chains",
  parallel: 1,
  weight: 1,
  generate(random) {
    const [shape, choose] = random.pick(Object.entries(SHAPES));
    const creators = 1 + random.below(48);
    return {
      kind: shape,
      // The ticks are those of many inputs.
      maxTick: Number.POSITIVE_INFINITY,
      description: () => `${shape} by ${creators} connections`,
      async run(target) {
        // Without authentication, keys have no creator.
        if (target.token === undefined) return [];
        const operator = target.operator;
        const create = (secret: string) =>
          restClient(target, { authorization: `Bearer ${secret}` })("POST", paths.issued, TOKEN);
        const root = await issue(operator, TOKEN);
        const secrets = [root.secret];
        const problems: string[] = [];
        let isRevoked = false;
        const isLong = Promise.withResolvers<void>();
        const clients = Array.from({ length: creators }, async () => {
          for (;;) {
            const startsAfter = isRevoked;
            const { status, text, body } = await create(secrets[choose(secrets.length, random)] ?? root.secret);
            if (startsAfter ? status !== 401 : ![200, 401, 503].includes(status))
              problems.push(
                `a creation ${startsAfter ? "after" : "before"} the revocation answered ${status}: ${text}`,
              );
            if (status === 200) secrets.push(body.secret);
            if (secrets.length >= TOKENS) isLong.resolve();
            if (startsAfter || (status !== 200 && status !== 503)) return;
          }
        });
        await Promise.race([isLong.promise, Promise.all(clients)]);
        for (let calls = 1; calls <= MAX_CALLS; calls++) {
          const revocation = { reason: "REVOCATION_REASON_KEY_COMPROMISE", include_descendants: true };
          const { status, text, body } = await operator("POST", `${paths.keys}/${root.keyId}:revoke`, revocation);
          if (status !== 200) return [...problems, `revoking with descendants answered ${status}: ${text}`];
          isRevoked = true;
          if (body.done) break;
          if (calls === MAX_CALLS) problems.push(`${calls} calls left ${body.remaining_descendant_count} descendants`);
        }
        await Promise.all(clients);
        const { valid = 0 } = await verdictsOf(operator, secrets);
        if (valid !== 0) problems.push(`${valid} of ${secrets.length} descendants are valid after the revocation`);
        return problems;
      },
    };
  },
};

// A token expires no later than its creator.
const TOKEN = {
  name: "chain",
  actor_id: "chain",
  scopes: ["keyhold:keys.write"],
  expire_time: new Date(Date.now() + 86_400_000).toISOString(),
};
