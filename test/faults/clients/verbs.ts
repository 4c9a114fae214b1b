import { paths } from "../../support/rest.ts";
import type { Register } from "../history.ts";
import { created, deleted, disabled, enabled, revoked, rotated, updated } from "../register.ts";
import { type Answer, refusalOf } from "./answer.ts";
import type { Member } from "./member.ts";
import { type MutationContext, mutate, type Request, verifyKeyOnAllNodes } from "./mutate.ts";

/** Changes of a key. Each resolves to whether the key can be changed again: it exists and its state is known. */

/** Below the service's limit of 16 valid secrets. */
const MAX_GRACE_PERIODS = 15;

/** Maximum number of attempts at the final change of a key. */
const MAX_ATTEMPTS = 3;

export async function issue(context: MutationContext, register: Register): Promise<boolean> {
  const [secret, scopes] = [context.history.nextNumber(), newScopes(context, register)];
  const send = ({ rest }: Member) => rest.send("POST", paths.issued, { ...fieldsOf(register), scopes });
  const body = await mutate(context, register, { kind: "issue", effect: created(secret, scopes), send });
  if (body === null) return false;
  register.keyId = body.issued_api_key.key_id;
  register.generation = secret;
  register.addCredential({ type: "secret", text: body.secret, generation: secret, secret, scopes: null });
  verifyKeyOnAllNodes(context, register);
  return true;
}

/** Imports a key. Half of the raw keys are verified before, so that nodes have cached them as not found. */
export async function importKey(context: MutationContext, register: Register): Promise<boolean> {
  const [secret, scopes] = [context.history.nextNumber(), newScopes(context, register)];
  const text = rawKeyOf(context, register);
  if (context.seeded.below(2) === 0) await Promise.race(verifyKeyOnAllNodes(context, register));
  const send = ({ rest }: Member) =>
    rest.send("POST", paths.imported, { ...fieldsOf(register), scopes, raw_key: text });
  const body = await mutate(context, register, { kind: "import", effect: created(secret, scopes), send });
  if (body === null) return false;
  register.keyId = body.key_id;
  register.generation = secret;
  verifyKeyOnAllNodes(context, register);
  return true;
}

export async function update(context: MutationContext, register: Register): Promise<boolean> {
  const scopes = newScopes(context, register);
  const send = ({ rest }: Member) => rest.send("PATCH", pathOf(register), { scopes });
  const body = await mutate(context, register, { kind: "update", effect: updated(scopes), send });
  verifyKeyOnAllNodes(context, register);
  return body !== null || handleUnknownOutcome(context, register);
}

export async function rotate(context: MutationContext, register: Register, isGraceful: boolean): Promise<boolean> {
  const secret = context.history.nextNumber();
  const kind = isGraceful ? "rotate with grace" : "rotate";
  if (isGraceful && register.mutations.filter((one) => one.kind === kind).length >= MAX_GRACE_PERIODS) return true;
  const fields = isGraceful ? { grace_period: "30d" } : {};
  const send = ({ rest }: Member) => rest.send("POST", `${pathOf(register)}:rotate`, fields);
  const body = await mutate(context, register, { kind, effect: rotated(secret, isGraceful), send });
  if (body === null) return handleUnknownOutcome(context, register);
  register.addCredential({ type: "secret", text: body.secret, generation: register.generation, secret, scopes: null });
  verifyKeyOnAllNodes(context, register);
  return true;
}

/**
 * Disables a key, and enables half of those at once; enables a disabled one. Some calls repeat the previous one, which must be as coherent.
 */
export async function flip(context: MutationContext, register: Register): Promise<boolean> {
  const isDisabled =
    register.mutations.findLast(({ kind }) => kind === "disable" || kind === "enable")?.kind === "disable";
  const { seeded } = context;
  if (isDisabled) return setDisabled(context, register, seeded.below(4) === 0);
  const isKnown = await setDisabled(context, register, seeded.below(8) > 0);
  return isKnown && seeded.below(2) === 0 ? setDisabled(context, register, false) : isKnown;
}

async function setDisabled(context: MutationContext, register: Register, isDisabled: boolean): Promise<boolean> {
  const kind = isDisabled ? "disable" : "enable";
  const send = ({ rest }: Member) => rest.send("POST", `${paths.keys}/${register.keyId}:${kind}`, {});
  const body = await mutate(context, register, { kind, effect: isDisabled ? disabled : enabled, send });
  verifyKeyOnAllNodes(context, register);
  return body !== null || handleUnknownOutcome(context, register);
}

export function revoke(context: MutationContext, register: Register): Promise<boolean> {
  return end(context, register, revocationOf(register));
}

/** Revokes a key by its own credential. A rejection of the credential is a verdict on it. */
export function selfRevoke(context: MutationContext, register: Register): Promise<boolean> {
  const own = register.credentials.findLast(({ type }) => type === "secret" || type === "raw");
  if (own === undefined) return Promise.resolve(true);
  const send = async ({ name, rest }: Member) => {
    const began = performance.now();
    const answer = await rest.send("POST", paths.selfRevoke, { credential: own.text });
    const observed = refusalOf(answer);
    const read = { node: name, by: "self-revoke", began, ended: performance.now() };
    if (observed !== undefined) context.history.verdict(register, own, { ...read, observed });
    return answer;
  };
  return end(context, register, { kind: "self-revoke", effect: revoked, send }, revocationOf(register));
}

export function remove(context: MutationContext, register: Register): Promise<boolean> {
  const send = ({ rest }: Member) => rest.send("DELETE", pathOf(register));
  return end(context, register, { kind: "delete", effect: deleted, send });
}

export async function removeAndImport(context: MutationContext, register: Register): Promise<boolean> {
  await remove(context, register);
  const isGone = register.mutations.every(({ acknowledged }) => acknowledged !== null);
  return isGone && importKey(context, register);
}

/** Handles a change without a response, whose effect is unknown. Half of such keys are revoked, the others are left unchanged. */
async function handleUnknownOutcome(context: MutationContext, register: Register): Promise<boolean> {
  if (context.seeded.below(2) === 0) await revoke(context, register);
  return false;
}

/** Makes the final change of a key, and retries it until it is acknowledged, which must be safe. */
async function end(context: MutationContext, register: Register, first: Request, again = first): Promise<boolean> {
  let body = await mutate(context, register, first);
  for (let attempts = 1; body === null && attempts < MAX_ATTEMPTS; attempts++) {
    body = await mutate(context, register, { ...again, kind: first.kind });
  }
  verifyKeyOnAllNodes(context, register);
  return false;
}

function revocationOf({ keyId }: Register): Request {
  const send = ({ rest }: Member): Promise<Answer> =>
    rest.send("POST", `${paths.keys}/${keyId}:revoke`, { reason: "REVOCATION_REASON_SUPERSEDED" });
  return { kind: "revoke", effect: revoked, send };
}

function rawKeyOf({ history, seeded }: MutationContext, register: Register): string {
  const known = register.credentials.find(({ type }) => type === "raw");
  if (known !== undefined) return known.text;
  const text = `raw-${history.nextNumber()}-${seeded.below(2 ** 31)}`;
  register.addCredential({ type: "raw", text, generation: 0, secret: 0, scopes: null });
  return text;
}

/** Returns scopes that identify the key and the change, so that a verdict identifies the state that it shows. */
function newScopes({ history, seeded }: MutationContext, { name }: Register): string[] {
  const scopes = [name.replace(" ", ":"), `change:${history.nextNumber()}`];
  return [...scopes, ...["read", "write", "list"].filter(() => seeded.below(2) === 0)];
}

function pathOf({ kind, keyId }: Register): string {
  return `${paths[kind]}/${keyId}`;
}

/** Returns the fields by which the audit identifies the record. */
function fieldsOf({ name }: Register) {
  return { name, actor_id: "faults", metadata: { name } };
}
