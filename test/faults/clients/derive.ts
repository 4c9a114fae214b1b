import { paths } from "../../support/rest.ts";
import type { Seeded } from "../../support/seeded.ts";
import type { History, Register } from "../history.ts";
import { type Credential, valid } from "../register.ts";
import { kidOf } from "../signing-keys.ts";
import { outcomeOf, refusalOf } from "./answer.ts";
import type { Member } from "./member.ts";

type TokenType = "JWT" | "MACAROON";

/** Derives a token from a credential of this key. The result, and the scopes of the token, are a verdict on that credential. */
export async function derive(
  history: History,
  member: Member,
  register: Register,
  seeded: Seeded,
  type = seeded.pick<TokenType>(["JWT", "MACAROON"]),
): Promise<void> {
  if (register.credentials.length === 0) return;
  const parent = seeded.pick(register.credentials);
  const request = { credential: parent.text, algorithm: `TOKEN_ALGORITHM_${type}`, ttl: "10d" };
  const began = performance.now();
  const answer = await member.rest.send("POST", `${paths.keys}:derive`, request);
  const ended = performance.now();
  const outcome = outcomeOf(answer);
  history.calls.push({ kind: "derive", node: member.name, began, ended, count: 1, outcome });
  if (outcome !== "answered") return;
  const read = { node: member.name, by: "derive", began, ended };
  if (answer.status === 200) {
    const { token, scopes } = answer.body.token;
    history.verdict(register, parent, { ...read, observed: valid(scopes) });
    register.addCredential({ ...originOf(parent, register), type, text: token, scopes });
    if (type === "JWT") history.signatures.push({ node: member.name, began, ended, kid: kidOf(token) });
    return;
  }
  const observed = refusalOf(answer);
  if (observed !== undefined) history.verdict(register, parent, { ...read, observed });
  else history.unexpected.push(`derive on ${member.name}: ${answer.status} ${JSON.stringify(answer.body)}`);
}

/** A raw key belongs to the current generation of its key, which its owner knows. */
function originOf({ type, generation, secret }: Credential, register: Register) {
  return type === "raw" ? { generation: register.generation, secret: register.generation } : { generation, secret };
}
