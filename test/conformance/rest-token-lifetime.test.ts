import { describe, expect, test } from "vitest";
import {
  derive,
  expire,
  importKey,
  type KeyKind,
  keyKinds,
  type MadeKey,
  revoke,
  succeeded,
  table,
  useService,
} from "../support/conformance.ts";
import { issue, type Json, paths, verify } from "../support/rest.ts";

const suite = useService();
const { rest } = suite;

const ALGORITHMS = ["JWT", "MACAROON"] as const;

const [issued, imported] = keyKinds(rest) as [KeyKind, KeyKind];

async function selfRevoke({ credential }: MadeKey): Promise<void> {
  succeeded(await rest("POST", paths.selfRevoke, { credential, reason: "REVOCATION_REASON_KEY_COMPROMISE" }));
}

async function remove({ keyId }: MadeKey): Promise<void> {
  succeeded(await rest("DELETE", `${paths.imported}/${keyId}`));
}

async function removeAndImportAgain(parent: MadeKey): Promise<void> {
  await remove(parent);
  await importKey(rest, { raw_key: parent.credential, scopes: ["a"] });
}

/** Ends of a token's parent, and the verdict on the token from then on. */
const ENDS: readonly (readonly [
  what: string,
  make: KeyKind["make"],
  end: (parent: MadeKey) => Promise<unknown>,
  code: string,
])[] = [
  ["an issued key that is revoked", issued.make, ({ keyId }) => revoke(rest, keyId), "REVOKED"],
  ["an issued key that revokes itself", issued.make, selfRevoke, "REVOKED"],
  [
    "an issued key that is rotated",
    issued.make,
    ({ keyId }) => rest("POST", `${paths.issued}/${keyId}:rotate`, {}),
    "REVOKED",
  ],
  ["an issued key that expires", issued.make, ({ keyId }) => expire(suite, keyId), "EXPIRED"],
  ["an imported key that is revoked", imported.make, ({ keyId }) => revoke(rest, keyId), "REVOKED"],
  ["an imported key that revokes itself", imported.make, selfRevoke, "REVOKED"],
  ["an imported key that is deleted", imported.make, remove, "NOT_FOUND"],
  ["an imported key that is deleted and imported again", imported.make, removeAndImportAgain, "NOT_FOUND"],
  ["an imported key that expires", imported.make, ({ keyId }) => expire(suite, keyId), "EXPIRED"],
];

describe.each(table(ALGORITHMS))("a %s is invalid at once", (algorithm) => {
  const tokenOf = async (credential: string) =>
    (await derive(rest, credential, { algorithm: `TOKEN_ALGORITHM_${algorithm}` })).token;

  test.each(table(ENDS))("after its parent, %s, and so is every token derived from it", async (_, make, end, code) => {
    const parent = await make({ scopes: ["a"] });
    const token = await tokenOf(parent.credential);
    const children = [];
    for (const other of ALGORITHMS) {
      children.push((await derive(rest, token, { algorithm: `TOKEN_ALGORITHM_${other}` })).token);
    }
    const tokens = [token, ...children, await tokenOf(children[0])];
    const verdicts = () => Promise.all(tokens.map((credential) => verify(rest, credential)));
    // Cached, too.
    expect(await verify(rest, parent.credential)).toMatchObject({ is_valid: true });
    expect((await verdicts()).map(({ is_valid }) => is_valid)).toEqual([true, true, true, true]);
    await end(parent);
    const expected = { is_valid: false, error_code: `VERIFICATION_ERROR_${code}` };
    const ofParent = end === removeAndImportAgain ? { is_valid: true } : expected;
    expect(await verify(rest, parent.credential)).toMatchObject(ofParent);
    expect(await verdicts()).toMatchObject(tokens.map(() => expected));
    const { results } = succeeded(
      await rest("POST", `${paths.keys}:batchVerify`, { requests: tokens.map((credential) => ({ credential })) }),
    );
    expect(results).toMatchObject(tokens.map(() => expected));
  });

  test("loses the scopes that its key loses, and gains none", async () => {
    const { keyId, secret } = await issue(rest, { scopes: ["a", "b", "c"] });
    const { token } = await derive(rest, secret, { algorithm: `TOKEN_ALGORITHM_${algorithm}`, scopes: ["a", "b"] });
    const scopesAfter = async (scopes: string[]) => {
      succeeded(await rest("PATCH", `${paths.issued}/${keyId}`, { scopes }));
      return [...(await verify(rest, token)).scopes].sort();
    };
    expect(await scopesAfter(["b", "c", "d"])).toEqual(["b"]);
    expect(await scopesAfter([])).toEqual([]);
    expect(await scopesAfter(["a", "b", "c"])).toEqual(["a", "b"]);
  });

  test("is independent of another token of the same key", async () => {
    const { secret } = await issue(rest);
    const [one, two]: Json[] = [await tokenOf(secret), await tokenOf(secret)];
    expect(one).not.toBe(two);
    expect(await verify(rest, one)).toMatchObject({ is_valid: true });
    expect(await verify(rest, two)).toMatchObject({ is_valid: true });
  });
});
