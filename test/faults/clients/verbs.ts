import { paths } from "../../support/rest.ts";
import type { Register } from "../history.ts";
import { created, deleted, revoked, rotated, updated } from "../register.ts";
import { type Answer, refusalOf } from "./answer.ts";
import type { Member } from "./member.ts";
import { chaseKey, mutate, type Request, type Workplace } from "./mutate.ts";

/** The changes of a key. Each answers whether the key may be changed again: it is there, and all is known of it. */

/** The service keeps 16 at the most. */
const MAX_GRACES = 15;

/** How often a last change is sent until it is known to have been made. */
const MAX_ATTEMPTS = 3;

export async function issue(work: Workplace, register: Register): Promise<boolean> {
  const [secret, scopes] = [work.history.nextNumber(), newScopes(work, register)];
  const send = ({ rest }: Member) => rest.send("POST", paths.issued, { ...fieldsOf(register), scopes });
  const body = await mutate(work, register, { kind: "issue", effect: created(secret, scopes), send });
  if (body === null) return false;
  register.keyId = body.issued_api_key.key_id;
  register.incarnation = secret;
  register.show({ type: "secret", text: body.secret, incarnation: secret, secret, scopes: null });
  chaseKey(work, register);
  return true;
}

/** Of half of the raw keys the nodes have said before that there is no such key. */
export async function importKey(work: Workplace, register: Register): Promise<boolean> {
  const [secret, scopes] = [work.history.nextNumber(), newScopes(work, register)];
  const text = rawKeyOf(work, register);
  if (work.seeded.below(2) === 0) await Promise.race(chaseKey(work, register));
  const send = ({ rest }: Member) =>
    rest.send("POST", paths.imported, { ...fieldsOf(register), scopes, raw_key: text });
  const body = await mutate(work, register, { kind: "import", effect: created(secret, scopes), send });
  if (body === null) return false;
  register.keyId = body.key_id;
  register.incarnation = secret;
  chaseKey(work, register);
  return true;
}

export async function update(work: Workplace, register: Register): Promise<boolean> {
  const scopes = newScopes(work, register);
  const send = ({ rest }: Member) => rest.send("PATCH", pathOf(register), { scopes });
  const body = await mutate(work, register, { kind: "update", effect: updated(scopes), send });
  chaseKey(work, register);
  return body !== null || doubt(work, register);
}

export async function rotate(work: Workplace, register: Register, isGraceful: boolean): Promise<boolean> {
  const secret = work.history.nextNumber();
  const kind = isGraceful ? "rotate with grace" : "rotate";
  if (isGraceful && register.mutations.filter((one) => one.kind === kind).length >= MAX_GRACES) return true;
  const fields = isGraceful ? { grace_period: "30d" } : {};
  const send = ({ rest }: Member) => rest.send("POST", `${pathOf(register)}:rotate`, fields);
  const body = await mutate(work, register, { kind, effect: rotated(secret, isGraceful), send });
  if (body === null) return doubt(work, register);
  register.show({ type: "secret", text: body.secret, incarnation: register.incarnation, secret, scopes: null });
  chaseKey(work, register);
  return true;
}

export function revoke(work: Workplace, register: Register): Promise<boolean> {
  return end(work, register, revocationOf(register));
}

/** A refusal of the credential is a verdict on it. */
export function selfRevoke(work: Workplace, register: Register): Promise<boolean> {
  const own = register.credentials.findLast(({ type }) => type === "secret" || type === "raw");
  if (own === undefined) return Promise.resolve(true);
  const send = async ({ name, rest }: Member) => {
    const began = performance.now();
    const answer = await rest.send("POST", paths.selfRevoke, { credential: own.text });
    const said = refusalOf(answer);
    const read = { node: name, by: "self-revoke", began, ended: performance.now() };
    if (said !== undefined) work.history.verdict(register, own, { ...read, said });
    return answer;
  };
  return end(work, register, { kind: "self-revoke", effect: revoked, send }, revocationOf(register));
}

export function remove(work: Workplace, register: Register): Promise<boolean> {
  const send = ({ rest }: Member) => rest.send("DELETE", pathOf(register));
  return end(work, register, { kind: "delete", effect: deleted, send });
}

export async function removeAndImport(work: Workplace, register: Register): Promise<boolean> {
  await remove(work, register);
  const isGone = register.mutations.every(({ acknowledged }) => acknowledged !== null);
  return isGone && importKey(work, register);
}

/** Without an answer nobody knows what became of the change. Half of such keys are revoked, the others left as they are. */
async function doubt(work: Workplace, register: Register): Promise<boolean> {
  if (work.seeded.below(2) === 0) await revoke(work, register);
  return false;
}

/** The last change of a key is repeated until it is known to have been made: that must be safe. */
async function end(work: Workplace, register: Register, first: Request, again = first): Promise<boolean> {
  let body = await mutate(work, register, first);
  for (let attempts = 1; body === null && attempts < MAX_ATTEMPTS; attempts++) {
    body = await mutate(work, register, { ...again, kind: first.kind });
  }
  chaseKey(work, register);
  return false;
}

function revocationOf({ keyId }: Register): Request {
  const send = ({ rest }: Member): Promise<Answer> =>
    rest.send("POST", `${paths.keys}/${keyId}:revoke`, { reason: "REVOCATION_REASON_SUPERSEDED" });
  return { kind: "revoke", effect: revoked, send };
}

function rawKeyOf({ history, seeded }: Workplace, register: Register): string {
  const known = register.credentials.find(({ type }) => type === "raw");
  if (known !== undefined) return known.text;
  const text = `raw-${history.nextNumber()}-${seeded.below(2 ** 31)}`;
  register.show({ type: "raw", text, incarnation: 0, secret: 0, scopes: null });
  return text;
}

/** One is this key's alone and one this change's, so that a verdict says which state it tells of. */
function newScopes({ history, seeded }: Workplace, { name }: Register): string[] {
  const scopes = [name.replace(" ", ":"), `change:${history.nextNumber()}`];
  return [...scopes, ...["read", "write", "list"].filter(() => seeded.below(2) === 0)];
}

function pathOf({ kind, keyId }: Register): string {
  return `${paths[kind]}/${keyId}`;
}

/** What the audit knows the record by. */
function fieldsOf({ name }: Register) {
  return { name, actor_id: "faults", metadata: { name } };
}
