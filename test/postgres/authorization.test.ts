import { afterAll, beforeAll, expect, test } from "vitest";
import { attempt, KeyholdError } from "../../src/domain/errors.ts";
import type { ApiKey } from "../../src/domain/key.ts";
import { type KeyPageGrant, keyPageScopes } from "../../src/domain/key-page.ts";
import type { Principal } from "../../src/domain/principal.ts";
import { isVisible } from "../../src/domain/visibility.ts";
import { assertCanGrant, assertCanManage, assertManageableScopes } from "../../src/keys/authorization.ts";
import type { KeyUpdate, NewKey } from "../../src/keys/ports.ts";
import { text } from "../../src/postgres/connection/fragments.ts";
import { Pool } from "../../src/postgres/connection/pool.ts";
import { execute, prepared } from "../../src/postgres/connection/prepared.ts";
import * as sqlConditions from "../../src/postgres/keys/authorization.ts";
import { CAN_GRANT_UPDATE, updateValues } from "../../src/postgres/keys/change-one.ts";
import { insertKeys } from "../../src/postgres/keys/insert.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { operator } from "../support/principal.ts";
import { newKey } from "./new-keys.ts";

const END = new Date("2030-01-01T00:00:00.000Z");
const BEFORE_END = new Date(END.getTime() - 1);
const AFTER_END = new Date(END.getTime() + 1);

const caller = (fields: Partial<Principal>): Principal => ({ ...operator, method: "admin-token", ...fields });
const GRANT: KeyPageGrant = {
  ...{
    actorId: "own",
    permissions: ["CREATE", "ROTATE", "REVOKE"],
    allowedScopes: ["read"],
    maxTtl: null,
    returnUrl: null,
  },
};
const restricted = { restrictions: { actorIds: ["own", "also own"] } };

const CALLERS: Readonly<Record<string, Principal>> = {
  admin: caller({ scopes: ["keyhold:admin"] }),
  writer: caller({ scopes: ["keyhold:keys.write", "keyhold:verify"] }),
  issuer: caller({ scopes: ["keyhold:keys.issue"] }),
  holder: caller({ scopes: [], method: "secret" }),
  "admin until END": caller({ scopes: ["keyhold:admin"], expireTime: END }),
  "admin of own": caller({ scopes: ["keyhold:admin"], ...restricted }),
  "writer of own": caller({ scopes: ["keyhold:keys.write"], ...restricted }),
  "owner of read": caller({
    method: "key-page",
    scopes: keyPageScopes(GRANT),
    restrictions: { actorIds: ["own"], keyPage: GRANT },
  }),
};

/** A key as it is stored, with the update that is attempted. */
interface Row {
  readonly key: NewKey;
  readonly update?: KeyUpdate;
}

const stored = (fields: Partial<ApiKey> = {}): NewKey => {
  const made = newKey({ scopes: ["read"] });
  return { ...made, key: { ...made.key, actorId: "own", ...fields } };
};
const verify = { scopes: ["read", "keyhold:verify"] };
const admin = { scopes: ["keyhold:admin"] };
const write = { scopes: ["keyhold:keys.write"] };
const expiry = (time: Date | null) => ({ expiry: { time, maxKeyTtl: null } });

/** A key that must be adopted before END, and expires at `time` once it is adopted. */
function adoptable(time: Date | null): NewKey {
  const key = stored({ ...verify, hashAlgorithm: "SHA256", adoptBeforeTime: BEFORE_END, expireTime: BEFORE_END });
  return { ...key, hash: { schemeId: 1, parameters: null, adoptedExpireTime: time, lookup: null } };
}

const ROWS: Readonly<Record<string, Row>> = {
  plain: { key: stored() },
  "plain, more": { key: stored({ scopes: ["read", "write"] }) },
  foreign: { key: stored({ actorId: "foreign" }) },
  verify: { key: stored(verify) },
  "verify until END": { key: stored({ ...verify, expireTime: END }) },
  "verify, longer": { key: stored({ ...verify, expireTime: AFTER_END }) },
  "issue only": { key: stored({ scopes: ["keyhold:keys.issue"] }) },
  "unknown right": { key: stored({ scopes: ["keyhold:unknown"] }) },
  "admin of anyone": { key: stored({ ...admin, restrictedToActorIds: [] }) },
  "admin of own": { key: stored({ ...admin, restrictedToActorIds: ["own"] }) },
  "admin of foreign": { key: stored({ ...admin, restrictedToActorIds: ["own", "foreign"] }) },
  "adopted until END": { key: adoptable(END) },
  "adopted for ever": { key: adoptable(null) },
  "plain + verify": { key: stored(), update: verify },
  "plain + admin": { key: stored(), update: admin },
  "plain + write": { key: stored({ restrictedToActorIds: ["own"] }), update: write },
  "verify − verify": { key: stored(verify), update: { scopes: ["read"] } },
  "verify − expiry": { key: stored({ ...verify, expireTime: BEFORE_END }), update: expiry(null) },
  "verify, shortened": { key: stored(verify), update: expiry(END) },
  "verify, extended": { key: stored({ ...verify, expireTime: BEFORE_END }), update: expiry(AFTER_END) },
};

/**
 * What each caller may do with a key: not even `see` it, see it, `manage` it, or also `grant` it to its holder. `grant*` is `manage` in
 * TypeScript: an `ApiKey` does not contain when it expires once it is adopted.
 */
const TABLE = `
                  | admin | writer | issuer | holder | admin until END | admin of own | writer of own | owner of read
plain             | grant | grant  | grant  | grant  | grant           | grant        | grant         | grant
plain, more       | grant | grant  | grant  | grant  | grant           | grant        | grant         | manage
foreign           | grant | grant  | grant  | grant  | grant           | -            | -             | -
verify            | grant | grant  | see    | grant  | manage          | see          | see           | see
verify until END  | grant | grant  | see    | grant  | grant           | see          | see           | see
verify, longer    | grant | grant  | see    | grant  | manage          | see          | see           | see
issue only        | grant | grant  | grant  | grant  | manage          | see          | see           | see
unknown right     | grant | see    | see    | grant  | manage          | see          | see           | see
admin of anyone   | grant | see    | see    | grant  | manage          | see          | see           | see
admin of own      | grant | see    | see    | grant  | manage          | grant        | see           | see
admin of foreign  | grant | see    | see    | grant  | manage          | -            | -             | -
adopted until END | grant | grant  | see    | grant  | grant*          | see          | see           | see
adopted for ever  | grant | grant  | see    | grant  | manage          | see          | see           | see
plain + verify    | grant | grant  | see    | grant  | manage          | see          | see           | see
plain + admin     | grant | see    | see    | grant  | manage          | see          | see           | see
plain + write     | grant | grant  | see    | grant  | manage          | grant        | grant         | see
verify − verify   | grant | grant  | see    | grant  | grant           | see          | see           | see
verify − expiry   | grant | grant  | see    | grant  | manage          | see          | see           | see
verify, shortened | grant | grant  | see    | grant  | grant           | see          | see           | see
verify, extended  | grant | grant  | see    | grant  | manage          | see          | see           | see`;

type Level = "-" | "see" | "manage" | "grant";

const levelOf = (sees: boolean, manages: boolean, grants: boolean): Level =>
  grants ? "grant" : manages ? "manage" : sees ? "see" : "-";

const holds = (assert: () => void) => !(attempt(assert) instanceof KeyholdError);

function levelInTypeScript({ key: { key }, update = {} }: Row, principal: Principal): Level {
  const { scopes = key.scopes, expiry } = update;
  const after = { ...key, scopes, ...(expiry && { expireTime: expiry.time, adoptBeforeTime: null }) };
  const sees = isVisible(key, principal.restrictions);
  const manages = sees && [key, after].every((one) => holds(() => assertCanManage(one, principal)));
  return levelOf(sees, manages, manages && holds(() => assertCanGrant(after, principal)));
}

/** The conditions of an update, and those of a change without new values. */
const LEVELS = [sqlConditions.canManage(text, sqlConditions.PRINCIPAL, "$scopes"), CAN_GRANT_UPDATE];
const LEVELS_WITHOUT_UPDATE = [sqlConditions.canManage(text, sqlConditions.PRINCIPAL), sqlConditions.canGrant()];

const selectLevel = ([manages, grants]: readonly string[]) =>
  prepared(`SELECT ${sqlConditions.isVisible(text, sqlConditions.PRINCIPAL)} AS sees, (${manages}) AS manages, (${grants}) AS grants
    FROM api_keys WHERE key_id = $keyId`);

async function levelInSql({ key: { key }, update }: Row, principal: Principal): Promise<Level[]> {
  const isManageable = holds(() => assertManageableScopes(update?.scopes ?? [], principal));
  const values = { keyId: key.keyId, ...sqlConditions.valuesOf(principal), ...updateValues(update ?? {}) };
  const forms = update === undefined ? [LEVELS, LEVELS_WITHOUT_UPDATE] : [LEVELS];
  const statements = forms.map((conditions) => ({ statement: selectLevel(conditions), values }));
  const rows = statements.map((one) =>
    pool.run((sql) => execute<Record<"sees" | "manages" | "grants", boolean>>(sql, one)),
  );
  return (await Promise.all(rows)).map(([row]) =>
    levelOf(row?.sees === true, row?.manages === true && isManageable, row?.grants === true && isManageable),
  );
}

let database: TestDatabase;
let pool: Pool;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = new Pool({ url: database.url, maxConnections: 1, statementTimeout: 10_000, prepare: false });
  await pool.run((sql) => sql`INSERT INTO hash_schemes (scheme_id, slot, algorithm) VALUES (1, 1, 'SHA256')`);
  const keys = Object.values(ROWS).map(({ key }) => key);
  const insertions = await pool.run((sql) => insertKeys(sql, keys, () => undefined));
  expect(new Set(insertions.map(({ outcome }) => outcome))).toEqual(new Set(["inserted"]));
});
afterAll(async () => {
  await pool.close();
  await database.drop();
});

const cells = (line: string) => line.split("|").map((cell) => cell.trim());
const [[, ...callers] = [], ...lines] = TABLE.trim().split("\n").map(cells);
const EXPECTED = lines.map(([row = "", ...levels]) => ({ row, levels }));

test("the table has all keys and callers", () => {
  expect([callers, EXPECTED.map(({ row }) => row)]).toEqual([Object.keys(CALLERS), Object.keys(ROWS)]);
});

test.each(EXPECTED)("$row: TypeScript", ({ row, levels }) => {
  const found = Object.values(CALLERS).map((principal) => levelInTypeScript(rowOf(row), principal));
  expect(found).toEqual(levels.map((level) => level.replace("grant*", "manage")));
});

test.each(EXPECTED)("$row: SQL", async ({ row, levels }) => {
  const found = [];
  for (const principal of Object.values(CALLERS)) found.push(new Set(await levelInSql(rowOf(row), principal)));
  expect(found).toEqual(levels.map((level) => new Set([level.replace("*", "")])));
});

function rowOf(name: string): Row {
  const row = ROWS[name];
  if (row === undefined) throw new Error(`no key has the name ${name}`);
  return row;
}
