import { describe, expect, test } from "vitest";
import { KeyholdError } from "../../src/domain/errors.ts";
import type { Verdict } from "../../src/domain/verdict.ts";
import type { NoteUse } from "../../src/verify/last-used.ts";
import { verify, verifyAll } from "../../src/verify/verify.ts";
import { withCaveats } from "../support/macaroon-caveats.ts";
import { fieldsOf, HOUR, NOW, newFixture, newRoots, requestsOf } from "./fixture.ts";
import { nextTurn } from "./store.ts";

type Fixture = ReturnType<typeof newFixture>;

function outcome(verdict: Verdict): string {
  return verdict.valid ? "VALID" : verdict.reason;
}

/** A credential of each type. */
function oneOfEach(fixture: Fixture) {
  const { keyId, credential } = fixture.issue();
  const raw = fixture.importRaw("a raw key of another service");
  return {
    ISSUED_API_KEY: credential,
    IMPORTED_API_KEY: raw.credential,
    JWT: fixture.jwt(keyId, NOW + HOUR),
    MACAROON: fixture.macaroon(raw.keyId, NOW + HOUR),
  };
}

const TYPES = ["ISSUED_API_KEY", "IMPORTED_API_KEY", "JWT", "MACAROON"] as const;

test.each(["10.0.0.", "2001:db8:1111:2222:3333:4444:5555:"])("64 blocks like %s0 are compiled once", async (start) => {
  const fixture = newFixture();
  const { keyId, credential } = fixture.issue();
  const allowedCidrs = Array.from(
    { length: 64 },
    (_, index) => `${start}${index + 100}/${start.includes(":") ? 128 : 32}`,
  );
  const record = fixture.store.records.get(keyId) ?? expect.unreachable();
  fixture.store.put({ ...record, key: { ...record.key, allowedCidrs } });
  const seen = new Set<unknown>();
  for (let again = 0; again < 4; again++) {
    const presentation = { clientIp: `${start}163`, requiredScopes: [] };
    const verdict = await verify(fixture.context, credential, "default", presentation);
    if (!verdict.valid) expect.unreachable(verdict.message);
    else if (again > 0) seen.add(verdict.key.allowedCidrs);
    expect(outcome(await verify(fixture.context, credential))).toBe("IP_NOT_ALLOWED");
  }
  // They are compiled once for each list.
  expect(seen.size).toBe(1);
});

test.each(["ISSUED_API_KEY", "JWT", "MACAROON"] as const)(
  "%s: a use of an older secret is recorded by its version, from the cache and without it, for the client",
  async (type) => {
    const fixture = newFixture();
    const { keyId, credential: secret } = fixture.issue();
    const credential = {
      ISSUED_API_KEY: secret,
      JWT: fixture.jwt(keyId, NOW + HOUR),
      MACAROON: fixture.macaroon(keyId, NOW + HOUR),
    }[type];
    const recorded: unknown[] = [];
    const onValid: NoteUse = (id, old, client) => recorded.push([id, old, client?.clientIp]) > 0;
    const use = (minute: number, presented = credential) => {
      fixture.at(NOW + minute * 60_000);
      return verify({ ...fixture.context, onValid }, presented, "default", {
        clientIp: `203.0.113.${minute}`,
        requiredScopes: [],
      });
    };
    await use(0);
    await use(1);
    const current = fixture.rotate(keyId, NOW + HOUR);
    fixture.changed(keyId);
    // In the minute of the last use: the entry of the rotated secret is another one.
    await use(1);
    await use(2);
    await use(3, current);
    await use(4, current);
    expect(recorded).toEqual([
      [keyId, null, "203.0.113.0"],
      [keyId, null, "203.0.113.1"],
      [keyId, 1, "203.0.113.1"],
      [keyId, 1, "203.0.113.2"],
      [keyId, null, "203.0.113.3"],
      [keyId, null, "203.0.113.4"],
    ]);
  },
);

describe.each(TYPES)("%s", (type) => {
  test("is verified synchronously from the cache, with the same verdict each time", async () => {
    const fixture = newFixture();
    const credential = oneOfEach(fixture)[type];
    const first = verify(fixture.context, credential);
    expect(first).toBeInstanceOf(Promise);
    const verdict = await first;
    expect(verdict).toMatchObject({ valid: true, credentialType: type });
    for (let again = 0; again < 3; again++) {
      const next = verify(fixture.context, credential);
      if (next instanceof Promise) expect.unreachable();
      expect(fieldsOf(next)).toEqual(verdict);
    }
    expect(fixture.store.statements.length).toBe(1);
  });

  test("has its use recorded once a minute while it is cached, and again if that failed", async () => {
    const fixture = newFixture();
    const credential = oneOfEach(fixture)[type];
    await verify(fixture.context, credential);
    const recorded: number[] = [];
    let isFull = true;
    const onValid = () => !isFull && recorded.push(minute) > 0;
    let minute = 0;
    for (minute of [0, 1, 2, 2, 1, 3]) {
      fixture.at(NOW + minute * 60_000);
      for (let again = 0; again < 3; again++) await verify({ ...fixture.context, onValid }, credential);
      isFull = minute === 0;
    }
    expect(recorded).toEqual([2, 3]);
  });

  test("has encoded answers in the cache, until its key changes", async () => {
    const fixture = newFixture();
    const credential = oneOfEach(fixture)[type];
    const answersOf = async () => {
      const verdict = await verify(fixture.context, credential);
      return verdict.valid ? verdict.answers : undefined;
    };
    expect(await answersOf()).toBeUndefined();
    (await answersOf())?.keep("JSON", Buffer.from("an answer"));
    (await answersOf())?.keep("PROTO", Buffer.from("another"));
    const answers = await answersOf();
    expect(["JSON", "PROTO", "FORWARD_AUTH"].map((form) => answers?.answer(form as "JSON")?.toString())).toEqual([
      "an answer",
      "another",
      undefined,
    ]);
    for (const record of [...fixture.store.records.values()]) {
      fixture.store.put({ ...record, key: { ...record.key, actorId: "another" } });
      fixture.cache.invalidate({ keyIds: [record.key.keyId], digests: [] });
    }
    // A call in flight may still have the verdict from before.
    answers?.keep("FORWARD_AUTH", Buffer.from("too late"));
    expect(await verify(fixture.context, credential)).toMatchObject({ valid: true, key: { actorId: "another" } });
    expect((await answersOf())?.answer("JSON")).toBeUndefined();
    answers?.keep("FORWARD_AUTH", Buffer.from("too late"));
    expect((await answersOf())?.answer("FORWARD_AUTH")).toBeUndefined();
  });

  test("waits for a renewal without a lease, for any cache directive, and fails if none is granted", async () => {
    const fixture = newFixture();
    const credential = oneOfEach(fixture)[type];
    await verify(fixture.context, credential);
    fixture.setCoherent(false);
    for (const mode of ["default", "no-cache", "no-store"] as const) {
      fixture.renewable(false);
      await expect(async () => verify(fixture.context, credential, mode)).rejects.toThrow("no lease");
      fixture.renewable(true);
      expect(await verify(fixture.context, credential, mode)).toMatchObject({ valid: true });
    }
    // The key of a token is cached itself, and found after the renewal.
    expect(fixture.store.statements.length).toBe(type === "JWT" || type === "MACAROON" ? 3 : 4);
    fixture.setCoherent(true);
    expect(verify(fixture.context, credential)).toMatchObject({ valid: true });
  });

  test("is verified from the cache in the grace period after a lease, marked as stale, unless a fresh read is requested", async () => {
    const fixture = newFixture();
    const credential = oneOfEach(fixture)[type];
    const fresh = await verify(fixture.context, credential);
    expect(fresh.isStale).toBeUndefined();
    fixture.setCoherent(false);
    fixture.renewable(false);
    fixture.staleGrace(true);
    expect(await verify(fixture.context, credential)).toEqual({ ...fresh, isStale: true });
    const strict = { ...fixture.context, allowsStale: false };
    await expect(async () => verify(strict, credential)).rejects.toThrow("no lease");
    expect(await verifyAll(fixture.context, requestsOf([credential]))).toEqual([{ ...fresh, isStale: true }]);
    for (const mode of ["no-cache", "no-store"] as const)
      await expect(async () => verify(fixture.context, credential, mode)).rejects.toThrow("no lease");
    fixture.cache.clear();
    await expect(async () => verify(fixture.context, credential)).rejects.toThrow("no lease");
    fixture.renewable(true);
    fixture.setCoherent(true);
    expect(await verify(fixture.context, credential)).toEqual(fresh);
  });

  test("is evaluated at the time of each call", async () => {
    const fixture = newFixture();
    const credential = oneOfEach(fixture)[type];
    for (const record of [...fixture.store.records.values()]) {
      fixture.store.put({ ...record, key: { ...record.key, expireTime: new Date(NOW + HOUR / 2) } });
    }
    for (let again = 0; again < 4; again++) expect(outcome(await verify(fixture.context, credential))).toBe("VALID");
    fixture.at(NOW + HOUR / 2 - 1);
    expect(outcome(await verify(fixture.context, credential))).toBe("VALID");
    fixture.at(NOW + HOUR / 2);
    expect(await verify(fixture.context, credential)).toMatchObject({
      reason: "EXPIRED",
      message: "the key has expired",
    });
    expect(fixture.store.statements.length).toBe(1);
  });

  test("is read again with no-cache, whose result is cached, and with no-store, whose result is not", async () => {
    const fixture = newFixture();
    const credential = oneOfEach(fixture)[type];
    const actors = async (...modes: ("default" | "no-cache" | "no-store")[]) => {
      const seen: string[] = [];
      for (const mode of modes) {
        const verdict = await verify(fixture.context, credential, mode);
        seen.push(verdict.valid ? verdict.key.actorId : verdict.reason);
      }
      return seen;
    };
    const rename = (actorId: string) => {
      for (const record of [...fixture.store.records.values()])
        fixture.store.put({ ...record, key: { ...record.key, actorId } });
    };
    expect(await actors("no-store", "default")).toEqual(["actor_1", "actor_1"]);
    rename("second");
    expect(await actors("default", "no-store", "default")).toEqual(["actor_1", "second", "actor_1"]);
    rename("third");
    expect(await actors("no-cache", "default")).toEqual(["third", "third"]);
    expect(fixture.store.statements.length).toBe(4);
    fixture.store.records.clear();
    expect(await actors("default", "no-cache", "default")).toEqual(["third", "NOT_FOUND", "NOT_FOUND"]);
  });

  test("is not cached with no-store", async () => {
    const fixture = newFixture();
    const credential = oneOfEach(fixture)[type];
    await verify(fixture.context, credential, "no-store");
    await verify(fixture.context, `${credential}x`, "no-store");
    expect(fixture.cache.stats()).toMatchObject({ entries: 0, credentials: 0, negatives: 0, bytes: 0 });
  });

  test("has the same verdict without a cache, with one read each time", async () => {
    const [fixture, uncached] = [newFixture(), newFixture({ cached: false })];
    const credential = oneOfEach(uncached)[type];
    expect(outcome(await verify(uncached.context, credential))).toBe("VALID");
    expect(outcome(await verify(uncached.context, credential))).toBe("VALID");
    expect(uncached.store.statements.length).toBe(2);
    expect(outcome(await verify(fixture.context, credential))).not.toBe("VALID");
  });
});

describe("a token", () => {
  test.each(["jwt", "macaroon"] as const)("%s that expires while it is cached is rejected as expired", async (kind) => {
    const fixture = newFixture();
    const { keyId } = fixture.issue();
    const token = fixture[kind](keyId, NOW + HOUR);
    const fresh = newFixture({ cached: false });
    await verify(fixture.context, token);
    fixture.at(NOW + HOUR - 1);
    expect(outcome(await verify(fixture.context, token))).toBe("VALID");
    fixture.at(NOW + HOUR);
    const verdict = verify(fixture.context, token);
    expect(verdict).toMatchObject({ valid: false, reason: "EXPIRED", keyId });
    expect(verdict).toMatchObject({ message: expect.stringMatching(/^the (token|macaroon) has expired$/) });
    expect(fresh.store.statements).toEqual([]);
  });

  test("is rejected with the secret that it was derived from", async () => {
    const fixture = newFixture();
    const { keyId } = fixture.issue();
    const token = fixture.jwt(keyId, NOW + HOUR);
    await verify(fixture.context, token);
    fixture.rotate(keyId, null);
    fixture.changed(keyId);
    expect(outcome(await verify(fixture.context, token))).toBe("SECRET_ROTATED");
  });

  test("has at most the current scopes of its key", async () => {
    const fixture = newFixture();
    const { keyId } = fixture.issue();
    const token = fixture.macaroon(keyId, NOW + HOUR);
    expect(await verify(fixture.context, token)).toMatchObject({
      scopes: ["read"],
      token: { claims: { team: "blue" } },
    });
    const record = fixture.store.records.get(keyId);
    if (record !== undefined) fixture.store.put({ ...record, key: { ...record.key, scopes: ["write"] } });
    fixture.changed(keyId);
    expect(await verify(fixture.context, token)).toMatchObject({ valid: true, scopes: [] });
  });

  test.each(["jwt", "macaroon"] as const)("%s is for its audience only, cached or not", async (kind) => {
    const fixture = newFixture();
    const { keyId } = fixture.issue();
    const verdicts = async (token: string, audience: string | null | undefined) => {
      const presentation = { requiredScopes: [], audience };
      const verdict = await verify(fixture.context, token, "default", presentation);
      const cached = verify(fixture.context, token, "default", presentation);
      if (cached instanceof Promise) expect.unreachable();
      expect(fieldsOf(cached)).toEqual(fieldsOf(verdict));
      return outcome(verdict);
    };
    const named = fixture[kind](keyId, NOW + HOUR, ["orders", "billing"]);
    expect(await verdicts(named, "orders")).toBe("VALID");
    expect(await verdicts(named, "billing")).toBe("VALID");
    expect(await verdicts(named, null)).toBe("VALID");
    expect(await verdicts(named, "order")).toBe("AUDIENCE_MISMATCH");
    expect(await verdicts(named, undefined)).toBe("AUDIENCE_MISMATCH");
    const any = fixture[kind](keyId, NOW + HOUR);
    expect(await verdicts(any, undefined)).toBe("VALID");
    expect(await verdicts(any, "orders")).toBe("AUDIENCE_MISMATCH");
  });

  test.each([
    ["billing", ["billing"]],
    ["nobody", undefined],
  ] as const)("for %s whose caveats leave no audience is for nobody, cached or not", async (_, minted) => {
    const fixture = newFixture();
    const { keyId } = fixture.issue();
    const token = withCaveats(fixture.macaroon(keyId, NOW + HOUR, minted), ["audience = orders"]);
    for (let cached = 0; cached < 3; cached++) {
      for (const audience of ["orders", "billing", undefined, null]) {
        const verdict = await verify(fixture.context, token, "default", { requiredScopes: [], audience });
        expect(outcome(verdict)).toBe("AUDIENCE_MISMATCH");
      }
    }
    expect(fixture.cache.stats().credentials).toBe(1);
  });

  test("by a revoked signing key is rejected, cached or not, as soon as the node has noticed that keys have changed", async () => {
    const fixture = newFixture();
    const { keyId } = fixture.issue();
    const [cached, other] = [fixture.jwt(keyId, NOW + HOUR), fixture.jwt(keyId, NOW + HOUR)];
    expect(outcome(await verify(fixture.context, cached))).toBe("VALID");
    fixture.revokeSigningKey();
    fixture.setCoherent(false);
    for (const token of [cached, other, cached]) {
      expect(outcome(await verify(fixture.context, token))).toBe("SIGNATURE_INVALID");
    }
    const verdicts = await verifyAll(fixture.context, requestsOf([cached, other]));
    expect(verdicts.map(outcome)).toEqual(["SIGNATURE_INVALID", "SIGNATURE_INVALID"]);
  });

  test("is verified by the last known signing key for a stale verdict only", async () => {
    const fixture = newFixture();
    const { keyId } = fixture.issue();
    const token = fixture.jwt(keyId, NOW + HOUR);
    await verify(fixture.context, token);
    fixture.setCoherent(false);
    fixture.renewable(false);
    await expect(Promise.resolve(verify(fixture.context, token))).rejects.toThrow("no lease");
    fixture.staleGrace(true);
    expect(await verify(fixture.context, token)).toMatchObject({ valid: true, isStale: true });
    fixture.renewable(true);
    fixture.revokeSigningKey();
    expect(await verify(fixture.context, token)).toMatchObject({ valid: false, reason: "SIGNATURE_INVALID" });
  });

  test("in a batch is unavailable like the keys while its signing key cannot be read", async () => {
    const fixture = newFixture();
    const { keyId } = fixture.issue();
    const requests = requestsOf([fixture.jwt(keyId, NOW + HOUR)]);
    const unavailable = new KeyholdError("DATABASE_UNAVAILABLE", "no database");
    const publicKey = () => Promise.reject(unavailable);
    const hasCurrentPublicKeys = () => false;
    const context = { ...fixture.context, publicKey, hasCurrentPublicKeys };
    await expect(Promise.resolve(verifyAll(context, requests))).rejects.toBe(unavailable);
    // The keys are current, and a look-up of an unknown one fails: the other items have verdicts.
    const verdicts = await verifyAll({ ...context, hasCurrentPublicKeys: () => true }, requests);
    expect(verdicts.map(outcome)).toEqual(["INTERNAL"]);
    expect(fixture.faults).toEqual([unavailable]);
  });

  test("is not cached if the cache was cleared while its signing key was fetched", async () => {
    const fixture = newFixture();
    const { keyId } = fixture.issue();
    const token = fixture.jwt(keyId, NOW + HOUR);
    const gate = Promise.withResolvers<void>();
    const publicKey = async (kid: string) => {
      await gate.promise;
      return fixture.context.publicKey(kid);
    };
    const verdict = verify({ ...fixture.context, publicKey }, token);
    fixture.cache.clear();
    gate.resolve();
    expect(outcome(await verdict)).toBe("VALID");
    expect(fixture.cache.stats()).toMatchObject({ credentials: 0, entries: 1 });
  });
});

test("a rotated secret is valid until its grace period ends, and its successor at once", async () => {
  const fixture = newFixture();
  const { keyId, credential } = fixture.issue();
  await verify(fixture.context, credential);
  const successor = fixture.rotate(keyId, NOW + HOUR);
  fixture.changed(keyId);
  expect(outcome(await verify(fixture.context, successor))).toBe("VALID");
  expect(await verify(fixture.context, credential)).toMatchObject({
    valid: true,
    expireTime: new Date(NOW + HOUR),
    secretVersion: 1,
  });
  fixture.at(NOW + HOUR);
  expect(outcome(await verify(fixture.context, credential))).toBe("SECRET_ROTATED");
  expect(outcome(await verify(fixture.context, successor))).toBe("VALID");
  expect(fixture.store.statements.length).toBe(3);
});

test("a revoked key is rejected after the notification, and stays so", async () => {
  const fixture = newFixture();
  const { keyId, credential } = fixture.issue();
  await verify(fixture.context, credential);
  const record = fixture.store.records.get(keyId);
  if (record !== undefined) fixture.store.put({ ...record, key: { ...record.key, revokeTime: new Date(NOW) } });
  fixture.changed(keyId);
  for (let call = 0; call < 3; call++) {
    expect(await verify(fixture.context, credential)).toMatchObject({ reason: "KEY_REVOKED", keyId });
  }
  expect([fixture.store.statements.length, fixture.used.length]).toEqual([2, 1]);
});

test("a raw key under a retired server key is found, also in the cache", async () => {
  const old = newFixture();
  const roots = newRoots(old.roots.current);
  const fixture = newFixture({ roots });
  const { credential } = old.importRaw("raw key from before");
  for (const record of old.store.records.values()) fixture.store.put(record);
  expect(fixture.rings.digest.all.length).toBe(2);
  expect(outcome(await verify(fixture.context, credential))).toBe("VALID");
  expect(verify(fixture.context, credential)).toMatchObject({ valid: true });
});

test("a record of a wrong kind or with another digest makes no credential valid", async () => {
  const fixture = newFixture();
  const { keyId, credential } = fixture.issue();
  const other = fixture.issue();
  const [mine, theirs] = [fixture.store.records.get(keyId), fixture.store.records.get(other.keyId)];
  if (mine === undefined || theirs === undefined) throw new Error("no keys");
  fixture.store.put({ ...mine, secrets: theirs.secrets });
  for (let call = 0; call < 2; call++)
    expect(outcome(await verify(fixture.context, credential))).toBe("SECRET_ROTATED");
  fixture.store.put({ key: { ...mine.key, kind: "imported" }, secrets: mine.secrets });
  fixture.changed(keyId);
  for (let call = 0; call < 2; call++) expect(outcome(await verify(fixture.context, credential))).toBe("NOT_FOUND");
});

describe("a batch", () => {
  test("causes one read for any content, and is synchronous when all is cached", async () => {
    const fixture = newFixture();
    const credentials = [...Object.values(oneOfEach(fixture)), "nobody's key", "kh_v1_mistyped", "a.b.c"];
    const asked = [...credentials, ...credentials];
    const verdicts = await verifyAll(fixture.context, requestsOf(asked));
    expect(verdicts.map(outcome)).toEqual([
      ...["VALID", "VALID", "VALID", "VALID", "NOT_FOUND", "INVALID_FORMAT", "NOT_FOUND"],
      ...["VALID", "VALID", "VALID", "VALID", "NOT_FOUND", "INVALID_FORMAT", "NOT_FOUND"],
    ]);
    // The issued key and its token share one look-up; the imported key is found by its digest, its token by the key id.
    expect(fixture.store.statements.map(({ length }) => length)).toEqual([5]);
    const again = verifyAll(fixture.context, requestsOf(asked));
    if (again instanceof Promise) expect.unreachable();
    expect(again.map(fieldsOf)).toEqual(verdicts);
    expect(fixture.store.statements.length).toBe(1);
  });

  test("reports an internal error as the verdict of its item only", async () => {
    const fixture = newFixture();
    const { keyId, credential } = fixture.issue();
    const token = fixture.jwt(keyId, NOW + HOUR);
    const fault = new Error("the store of signing keys is unreachable");
    for (const publicKey of [
      () => Promise.reject(fault),
      () => {
        throw fault;
      },
    ]) {
      const verdicts = await verifyAll({ ...fixture.context, publicKey }, requestsOf([token, credential]));
      expect(verdicts.map(outcome)).toEqual(["INTERNAL", "VALID"]);
    }
    expect(fixture.faults).toEqual([fault, fault]);
  });

  test("fails when the store does", async () => {
    const fixture = newFixture();
    const { credential } = fixture.issue();
    fixture.store.isHolding = true;
    const verdicts = verifyAll(fixture.context, requestsOf([credential, "kh_v1_mistyped"]));
    await nextTurn();
    fixture.store.held[0]?.fail(new Error("the database is unreachable"));
    await expect(verdicts).rejects.toThrow("the database is unreachable");
    fixture.store.isHolding = false;
    expect(outcome(await verify(fixture.context, credential))).toBe("VALID");
  });
});
