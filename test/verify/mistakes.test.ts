import { describe, expect, test } from "vitest";
import { explain } from "../../src/verify/explain.ts";
import { restrictedTo } from "../../src/verify/restricted.ts";
import { verify } from "../../src/verify/verify.ts";
import { HOUR, NOW, newFixture } from "./fixture.ts";

const QUOTED = "is in quotation marks: remove them";
const SPACED = "begins or ends with white space: remove it";
const SCHEME = "begins with an authentication scheme: send only the credential";
const INVISIBLE = "contains an invisible character: remove it";
const NORMALIZATION = "has characters with two Unicode forms (NFC, NFD): send the form that was imported";

type Change = (credential: string) => string;

/** Mistakes of whoever copies or configures a credential, of any type. */
const MISTAKES: readonly (readonly [what: string, change: Change, description: string])[] = [
  ["double quotes", (text) => `"${text}"`, QUOTED],
  ["single quotes", (text) => `'${text}'`, QUOTED],
  ["typographic quotes", (text) => `\u201c${text}\u201d`, QUOTED],
  ["a quote at its end", (text) => `${text}"`, QUOTED],
  ["quotes around the scheme too", (text) => `"Bearer ${text}"`, QUOTED],
  ["the scheme", (text) => `Bearer ${text}`, SCHEME],
  ["the scheme in lower case", (text) => `bearer ${text}`, SCHEME],
  ["a space before it", (text) => ` ${text}`, SPACED],
  ["a line break after it", (text) => `${text}\r\n`, SPACED],
  ["a no-break space after it", (text) => `${text}\u00a0`, SPACED],
  ["a byte order mark", (text) => `\ufeff${text}`, "begins with a byte order mark (U+FEFF): remove it"],
  ["a zero-width space", (text) => `${text.slice(0, 9)}\u200b${text.slice(9)}`, INVISIBLE],
  [
    "a line break within",
    (text) => `${text.slice(0, 9)} ${text.slice(9)}`,
    "contains white space: send only the credential",
  ],
  ["a composed letter", (text) => `${text}\u00e9`, NORMALIZATION],
  ["a decomposed letter", (text) => `${text}e\u0301`, NORMALIZATION],
  [
    "a dash",
    (text) => `${text.slice(0, 9)}\u2013${text.slice(9)}`,
    "contains a non-ASCII character: check that this is the correct credential",
  ],
];

function credentials() {
  const fixture = newFixture();
  const { keyId, credential: issued } = fixture.issue();
  const raw = fixture.importRaw("a-raw-key-of-another-service").credential;
  return { fixture, raw, issued, jwt: fixture.jwt(keyId, NOW + HOUR), macaroon: fixture.macaroon(keyId, NOW + HOUR) };
}

describe.each(["raw", "issued", "jwt", "macaroon"] as const)("a credential (%s) with", (type) => {
  test.each(MISTAKES)("%s is rejected with the mistake", async (_, change, description) => {
    const { fixture, [type]: credential } = credentials();
    expect(await verify(fixture.context, credential)).toMatchObject({ valid: true });
    // What begins like an issued secret is malformed; everything else can be a raw key.
    const isMalformed = type === "issued" && change(credential).startsWith("kh_v1_");
    const [reason, what] = isMalformed ? ["INVALID_FORMAT", "malformed secret"] : ["NOT_FOUND", "no such key"];
    const expected = { valid: false, reason, message: `${what}; the credential ${description}`, keyId: null };
    const other = restrictedTo(fixture.context, { actorIds: ["somebody else"] });
    for (const context of [fixture.context, fixture.context, other]) {
      expect(await verify(context, change(credential))).toEqual(expected);
    }
    const explained = await explain(fixture.context, { credential: change(credential) }, { requiredScopes: [] });
    expect(explained?.verdict).toEqual(expected);
  });
});

test.each([
  ["a character too few", (text: string) => text.slice(0, -1), "has fewer than 94 characters after _v1_"],
  ["a character too many", (text: string) => `${text}0`, "has more than 94 characters after _v1_"],
  ["a full stop", (text: string) => `${text.slice(0, -1)}.`, "contains a character that is not a letter or a digit"],
  [
    "a wrong letter",
    (text: string) => `${text.slice(0, -1)}${text.endsWith("a") ? "b" : "a"}`,
    "contains an incorrect character: the checksum does not match",
  ],
])("an issued secret with %s is malformed, and the message says why", async (_, change, description) => {
  const { fixture, issued } = credentials();
  const message = `malformed secret; the credential ${description}`;
  expect(await verify(fixture.context, change(issued))).toMatchObject({ reason: "INVALID_FORMAT", message });
});

test("a raw key with a mistake is valid if it was imported like that, and has no hint to others", async () => {
  const { fixture } = credentials();
  const { credential, keyId } = fixture.importRaw('"caf\u00e9 "');
  expect(await verify(fixture.context, credential)).toMatchObject({ valid: true, key: { keyId } });
  const nobody = newFixture();
  const other = restrictedTo(fixture.context, { actorIds: ["somebody else"] });
  expect(await verify(other, credential)).toEqual(await verify(nobody.context, credential));
  expect(await verify(fixture.context, "plain-and-unknown")).toMatchObject({ message: "no such key" });
});
