import { expect, test } from "vitest";
import type { Presentation } from "../../src/verify/context.ts";
import { verify } from "../../src/verify/verify.ts";
import { withCaveats } from "../support/macaroon-caveats.ts";
import { HOUR, NOW, newFixture } from "./fixture.ts";

const CAVEATS = [
  ...["audience = orders", "audience = billing", "audience = orders billing"],
  ...["scope = read", "scope = write", "time < 2026-01-01T00:10:00Z"],
  ...['claim team = "blue"', "claim admin = true"],
];

const PRESENTATIONS: readonly Presentation[] = [undefined, null, "orders", "billing"].map((audience) => ({
  requiredScopes: [],
  audience,
}));
/** Before and after the time of the caveat. */
const TIMES = [NOW, NOW + HOUR / 4];

test.each([
  ["no service", undefined],
  ["orders", ["orders"]],
  ["orders and billing", ["orders", "billing"]],
])("caveats only narrow a macaroon for %s, and their order is irrelevant", async (_, audience) => {
  const fixture = newFixture();
  /** Returns where a credential is accepted, and with which scopes. */
  const acceptedAt = async (credential: string) => {
    const places: string[] = [];
    for (const time of TIMES) {
      fixture.at(time);
      for (const [place, presentation] of PRESENTATIONS.entries()) {
        const verdict = await verify(fixture.context, credential, "default", presentation);
        if (verdict.valid) places.push(...["", ...verdict.scopes].map((scope) => `${time} ${place} ${scope}`));
      }
    }
    return new Set(places);
  };
  const bySet = new Map<string, Set<string>>();
  const extend = async (token: string, added: readonly string[], accepted: ReadonlySet<string>) => {
    for (const caveat of CAVEATS.filter((one) => !added.includes(one))) {
      const [narrower, all] = [withCaveats(token, [caveat]), [...added, caveat]];
      const left = await acceptedAt(narrower);
      expect(
        [...left].filter((place) => !accepted.has(place)),
        all.join(", "),
      ).toEqual([]);
      const set = all.toSorted().join();
      expect(left, all.join(", ")).toEqual(bySet.get(set) ?? left);
      bySet.set(set, left);
      if (all.length < 3) await extend(narrower, all, left);
    }
  };
  const token = fixture.macaroon(fixture.issue().keyId, NOW + HOUR, audience);
  const accepted = await acceptedAt(token);
  expect(accepted.size).toBeGreaterThan(0);
  await extend(token, [], accepted);
});
