import { describe, expect, test } from "vitest";
import {
  derive,
  expectRefused,
  importKey,
  invalid,
  keyKinds,
  notFound,
  succeeded,
  table,
  UNKNOWN_KEY_ID,
  useService,
} from "../support/conformance.ts";
import { issue, type Json, paths, verify } from "../support/rest.ts";

const suite = useService();
const { rest } = suite;

const START = { name: "before", scopes: ["a", "b"], metadata: { k: "v", l: "w" }, ttl: "1h" };

describe.each(keyKinds(rest))("an update of an $kind key", ({ path, resource: member, ...of }) => {
  const make = async () => (await of.make(START)).record;
  const url = (keyId: string, mask?: string) =>
    `${path}/${keyId}${mask === undefined ? "" : `?update_mask=${encodeURIComponent(mask)}`}`;
  const patch = (keyId: string, body: Json, mask?: string) => rest("PATCH", url(keyId, mask), body);
  const read = async (keyId: string) => succeeded(await rest("GET", `${path}/${keyId}`));

  /** Sets only these fields. */
  async function changes(before: Json, answer: Json, changed: Json): Promise<void> {
    const { update_time, ...after } = succeeded(answer);
    const { update_time: earlier, ...unchanged } = before;
    expect(after).toEqual({ ...unchanged, ...changed });
    expect(Date.parse(update_time)).toBeGreaterThanOrEqual(Date.parse(earlier));
    expect(await read(before.key_id)).toEqual({ ...after, update_time });
  }

  const ALL = { name: "after", scopes: ["c"], metadata: { m: "x" } };

  /** The mask, the resource in the body, and the changes. */
  const CHANGES: readonly (readonly [mask: string | undefined, resource: Json, changed: Json])[] = [
    [undefined, { name: "after" }, { name: "after" }],
    [undefined, { scopes: ["c"] }, { scopes: ["c"] }],
    [undefined, { metadata: { m: "x" } }, { metadata: { m: "x" } }],
    [undefined, ALL, ALL],
    [undefined, { scopes: [] }, { scopes: [] }],
    [undefined, { scopes: null }, { scopes: [] }],
    [undefined, { metadata: {} }, { metadata: {} }],
    ["name", { name: "after" }, { name: "after" }],
    ["name", ALL, { name: "after" }],
    ["name,scopes", ALL, { name: "after", scopes: ["c"] }],
    ["scopes,name", ALL, { name: "after", scopes: ["c"] }],
    ["name,name", ALL, { name: "after" }],
    ["metadata", ALL, { metadata: { m: "x" } }],
    ["scopes", { name: "after" }, { scopes: [] }],
    ["metadata", { name: "after" }, { metadata: {} }],
    ["name,scopes,metadata", { name: "after" }, { name: "after", scopes: [], metadata: {} }],
    ["*", ALL, ALL],
    ["*", { name: "after" }, { name: "after", scopes: [], metadata: {} }],
    ["name", { name: "after", status: "KEY_STATUS_REVOKED", actor_id: "thief" }, { name: "after" }],
    [undefined, { scopes: ["c", "d", "c"] }, { scopes: ["c", "d"] }],
  ];

  describe.each(table(["wrapped", "wrapped with its key_id", "bare", "bare with its key_id"]))(
    "with its body %s",
    (form) => {
      const bodyOf = (keyId: string, resource: Json) => {
        const whole = form.endsWith("key_id") ? { key_id: keyId, ...resource } : resource;
        return form.startsWith("wrapped") ? { [member]: whole } : whole;
      };

      test.each(table(CHANGES))("and the mask %s of %j changes %j", async (mask, resource, changed) => {
        const before = await make();
        await changes(before, await patch(before.key_id, bodyOf(before.key_id, resource), mask), changed);
      });
    },
  );

  test.each(table([undefined, "*", "name"]))(
    "accepts a changed record as it was read, with the mask %s",
    async (mask) => {
      const before = await make();
      await changes(before, await patch(before.key_id, { ...before, name: "after" }, mask), { name: "after" });
      await changes(before, await patch(before.key_id, { [member]: { ...before, name: "again" } }, mask), {
        name: "again",
      });
    },
  );

  test("ignores output-only fields, whatever their values", async () => {
    const before = await make();
    const outdated = {
      status: "KEY_STATUS_REVOKED",
      create_time: "2020-01-01T00:00:00Z",
      update_time: "2020-01-01T00:00:00Z",
      expire_time: null,
      last_used_time: "2030-01-01T00:00:00Z",
      revocation_reason: "REVOCATION_REASON_SUPERSEDED",
      hint: "",
    };
    await changes(before, await patch(before.key_id, { ...before, ...outdated, name: "after" }), { name: "after" });
    await changes(before, await patch(before.key_id, { ...before, ...outdated, name: "again" }, "*"), {
      name: "again",
    });
  });

  test.each(table([undefined, "*"]))("refuses another actor_id with the mask %s, and stores nothing", async (mask) => {
    const before = await make();
    for (const body of [
      { ...before, name: "after", actor_id: "thief" },
      { name: "after", actorId: "thief" },
    ]) {
      expectRefused(await patch(before.key_id, body, mask), invalid(`${member}.actor_id`));
      expectRefused(await patch(before.key_id, { [member]: body }, mask), invalid(`${member}.actor_id`));
    }
    expect(await read(before.key_id)).toEqual(before);
  });

  test.each(table([undefined, "*"]))(
    "ignores an empty actor_id, which Protobuf does not send, with the mask %s",
    async (mask) => {
      const before = await make();
      const { scopes, metadata } = before;
      const changed = await patch(before.key_id, { name: "after", actor_id: "", scopes, metadata }, mask);
      await changes(before, changed, { name: "after" });
    },
  );

  test("accepts its mask in the body, in either form", async () => {
    const before = await make();
    await changes(before, await patch(before.key_id, { [member]: ALL, update_mask: "name" }), { name: "after" });
    const body = { [member.replace(/_(.)/g, (_, letter) => letter.toUpperCase())]: { ...ALL, name: "camel" } };
    await changes(before, await rest("PATCH", `${path}/${before.key_id}?updateMask=name`, body), { name: "camel" });
  });

  test("takes effect at once in verification, also for a token derived before", async () => {
    const { keyId, secret } = await issue(rest, { scopes: ["a", "b"] });
    const { token } = await derive(rest, secret);
    for (const credential of [secret, token])
      expect(await verify(rest, credential)).toMatchObject({ scopes: ["a", "b"] });
    succeeded(await rest("PATCH", `${paths.issued}/${keyId}`, { scopes: ["b", "c"], metadata: { n: "1" } }));
    expect(await verify(rest, secret)).toMatchObject({ scopes: ["b", "c"], metadata: { n: "1" } });
    expect(await verify(rest, token)).toMatchObject({ scopes: ["b"], metadata: { n: "1" } });
  });

  const REFUSED: readonly (readonly [mask: string | undefined, resource: Json, field: string])[] = [
    ["actor_id", { actor_id: "thief" }, "update_mask"],
    ["key_id", { name: "after" }, "update_mask"],
    ["status", { status: "KEY_STATUS_REVOKED" }, "update_mask"],
    ["revoke_time", {}, "update_mask"],
    ["hint", { hint: "x" }, "update_mask"],
    ["name,actor_id", { name: "after", actor_id: "thief" }, "update_mask"],
    ["owner", { name: "after" }, "update_mask"],
    ["metadata.k", { metadata: { k: "x" } }, "update_mask"],
    ["name,", { name: "after" }, "update_mask"],
    ["name, scopes", { name: "after" }, "update_mask"],
    ["Name", { name: "after" }, "update_mask"],
    [`${member}.name`, { name: "after" }, "update_mask"],
    [undefined, { actor_id: "thief" }, "update_mask"],
    ["*", { name: "after", actor_id: "thief" }, `${member}.actor_id`],
    ["*,actor_id", { name: "after" }, "update_mask"],
    [undefined, {}, "update_mask"],
    ["", {}, "update_mask"],
    ["name", {}, `${member}.name`],
    ["name", { name: "" }, `${member}.name`],
    ["*", { scopes: ["c"] }, `${member}.name`],
    [undefined, { name: null }, `${member}.name`],
    [undefined, { name: "n".repeat(256) }, `${member}.name`],
    [undefined, { scopes: ["a b"] }, `${member}.scopes[0]`],
    [undefined, { metadata: { k: 1 } }, `${member}.metadata.k`],
    [undefined, { metadata: { k: "v".repeat(4096) } }, `${member}.metadata`],
    ["name", { name: "after", scope: [] }, `${member}.scope`],
  ];

  test.each(table(REFUSED))("with the mask %s of %j is refused at %s", async (mask, resource, field) => {
    const before = await make();
    expectRefused(await patch(before.key_id, { [member]: resource }, mask), invalid(field));
    expect(await read(before.key_id)).toEqual(before);
  });

  test("without a body and a mask is refused", async () => {
    const before = await make();
    expectRefused(await rest("PATCH", url(before.key_id)), invalid("update_mask"));
    expect(await read(before.key_id)).toEqual(before);
  });

  test("with a key_id in the body that differs from the path is refused", async () => {
    const before = await make();
    const body = { [member]: { key_id: UNKNOWN_KEY_ID, name: "after" } };
    expectRefused(await patch(before.key_id, body), invalid(`${member}.key_id`));
    expect(await read(before.key_id)).toEqual(before);
  });

  test("of a key of the other kind is 404", async () => {
    const other = member === "issued_api_key" ? await importKey(rest) : await issue(rest);
    expectRefused(await patch(other.keyId, { name: "after" }), notFound(other.keyId));
  });
});
