import { createSecretKey } from "node:crypto";
import { describe, expect, test } from "vitest";
import { chainSignature } from "../../../src/token/macaroon/chain.ts";
import type { Macaroon } from "../../../src/token/macaroon/format.ts";
import { type MacaroonInput, mintMacaroon } from "../../../src/token/macaroon/mint.ts";
import { formatMacaroon, looksLikeMacaroon, parseMacaroon } from "../../../src/token/macaroon/text.ts";
import { verifyMacaroon } from "../../../src/token/macaroon/verify.ts";
import go from "../../vectors/macaroon-go.json" with { type: "json" };
import ours from "../../vectors/macaroon-ours.json" with { type: "json" };
import python from "../../vectors/macaroon-pymacaroons.json" with { type: "json" };
import { fromBase64url } from "./samples.ts";

interface Vector {
  readonly root_key: string;
  readonly identifier: string;
  readonly location: string | null;
  readonly caveats: readonly { identifier: string; verification_id?: string; location?: string }[];
  readonly signature: string;
  readonly text: string;
}

const rootKey = { id: ours.root_key.id, secret: createSecretKey(ours.root_key.secret, "hex") };
const context = {
  keys: { find: (id: string) => (id === rootKey.id ? rootKey : undefined) },
  issuer: ours.issuer,
  now: Date.parse(ours.now),
};

test.each(ours.minted)("mints $name unchanged", ({ input, text }) => {
  const { token, expireTime } = mintMacaroon({ ...toInput(input), rootKey, issuer: ours.issuer });
  expect({ token, expireTime }).toEqual({ token: text, expireTime: input.expireTime });
});

test.each(ours.minted)("verifies $name", ({ input, text }) => {
  expect(verifyMacaroon(text, context)).toEqual({ ok: true, token: { ...input, issuer: ours.issuer } });
});

describe.each([go, python])("$maker", ({ made, attenuated, third_party }) => {
  test.each(made)("produces what we read and write: $name", (vector) => {
    expect(parseMacaroon(vector.text)).toEqual(toMacaroon(vector));
    expect(formatMacaroon(toMacaroon(vector))).toBe(vector.text);
    expect(looksLikeMacaroon(vector.text)).toBe(true);
  });

  const firstPartyOnly = made.filter((vector) => vector.caveats.every((caveat) => !("verification_id" in caveat)));
  test.each(firstPartyOnly)("signs like this library: $name", ({ root_key, identifier, caveats, signature }) => {
    const conditions = caveats.map((caveat) => fromBase64url(caveat.identifier));
    const signed = chainSignature(Buffer.from(root_key, "hex"), fromBase64url(identifier), conditions);
    expect(Buffer.from(signed).toString("hex")).toBe(signature);
  });

  test("its macaroons are not ours", () => {
    for (const { text } of made)
      expect(verifyMacaroon(text, context)).toMatchObject({ ok: false, reason: "INVALID_FORMAT" });
  });

  test.each(ours.attenuated)("attenuates a macaroon of this server: $name", ({ name, of, expect: expected }) => {
    const text = new Map(Object.entries(attenuated)).get(name) ?? "";
    expect(formatMacaroon(parseMacaroon(text))).toBe(text);
    const verdict = verifyMacaroon(text, context);
    if (typeof expected === "string") expect(verdict).toMatchObject({ ok: false, reason: expected });
    else expect(verdict).toEqual({ ok: true, token: { ...minted(of), ...expected, issuer: ours.issuer } });
  });

  test("adds a third-party caveat, which we reject", () => {
    expect(parseMacaroon(third_party).caveats.at(-1)?.thirdParty?.location).toBe("https://auth.example.com");
    expect(verifyMacaroon(third_party, context)).toEqual({
      ok: false,
      reason: "SIGNATURE_INVALID",
      message: "third-party caveats are not supported",
    });
  });
});

function minted(name: string) {
  const found = ours.minted.find((sample) => sample.name === name);
  if (found === undefined) throw new Error(`no sample ${name}`);
  return found.input;
}

/** JSON modules type an absent claim as optional. */
function toInput(input: (typeof ours.minted)[number]["input"]): Omit<MacaroonInput, "rootKey" | "issuer"> {
  return { ...input, claims: JSON.parse(JSON.stringify(input.claims)) };
}

function toMacaroon({ location, identifier, caveats, signature }: Vector): Macaroon {
  return {
    location: location ?? undefined,
    identifier: fromBase64url(identifier),
    caveats: caveats.map(({ identifier, verification_id, location }) => ({
      identifier: fromBase64url(identifier),
      thirdParty:
        verification_id === undefined ? undefined : { location, verificationId: fromBase64url(verification_id) },
    })),
    signature: Buffer.from(signature, "hex"),
  };
}
