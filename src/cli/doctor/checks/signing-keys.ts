import { readSigningKeys } from "../../../postgres/signing-key-store.ts";
import { isInUse, type SigningKeyRecord, unwrapSigningKey } from "../../../token/signing-key.ts";
import { type Check, type DatabaseContext, error, type Finding, ok, warning } from "../finding.ts";

const DAY = 86_400_000;
const OLD = 365 * DAY;

export const checkSigningKeys: Check<DatabaseContext> = async ({ rings, database, hasSchema, clock }) => {
  if (rings === null || !hasSchema) return [];
  const records = (await readSigningKeys(database)).records;
  const inUse = records.filter((record) => isInUse(record, clock.now()));
  if (inUse.every(({ retireTime }) => retireTime !== null))
    return [ok("no signing key yet: the first server will create one")];
  return inUse.map((record) =>
    evaluate(
      record,
      opens(() => unwrapSigningKey(record, rings.signingKeyWrap)),
      clock.now(),
    ),
  );
};

function evaluate(
  { kid, createTime, retireTime, tokensExpireTime }: SigningKeyRecord,
  opens: boolean,
  now: number,
): Finding {
  const days = Math.floor((now - createTime.getTime()) / DAY);
  if (retireTime !== null) {
    const until = `retired signing key ${kid}, tokens until ${tokensExpireTime?.toISOString()}`;
    return opens
      ? ok(until)
      : warning(`${until}, cannot be unwrapped`, "its tokens are rejected: configure its root secret as a retired one");
  }
  if (!opens)
    return error(
      `signing key ${kid} cannot be unwrapped`,
      "the root secret is not that of this database: configure the correct one. If it is lost: keyhold signing-keys rotate --force",
    );
  const message = `signing key ${kid}, ${days} days old`;
  return now - createTime.getTime() < OLD ? ok(message) : warning(message, "rotate it: keyhold signing-keys rotate");
}

function opens(unwrap: () => unknown): boolean {
  try {
    unwrap();
    return true;
  } catch {
    return false;
  }
}
