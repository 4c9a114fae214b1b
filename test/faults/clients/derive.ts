import { paths } from "../../support/rest.ts";
import type { Seeded } from "../../support/seeded.ts";
import type { History, Register } from "../history.ts";
import { type Credential, valid } from "../register.ts";
import { outcomeOf, refusalOf } from "./answer.ts";
import type { Member } from "./member.ts";

type TokenType = "JWT" | "MACAROON";

/** Derives a token of a credential of this key. Whether it may, and with which scopes, is a verdict on that credential. */
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
    history.verdict(register, parent, { ...read, said: valid(scopes) });
    register.show({ ...originOf(parent, register), type, text: token, scopes });
    if (type === "JWT") history.signatures.push({ node: member.name, began, ended, kid: kidOf(token) });
    return;
  }
  const said = refusalOf(answer);
  if (said !== undefined) history.verdict(register, parent, { ...read, said });
  else history.unexpected.push(`derive on ${member.name}: ${answer.status} ${JSON.stringify(answer.body)}`);
}

/** A raw key is of whichever incarnation there is: its owner, who derives, knows which. */
function originOf({ type, incarnation, secret }: Credential, register: Register) {
  return type === "raw" ? { incarnation: register.incarnation, secret: register.incarnation } : { incarnation, secret };
}

function kidOf(token: string): string {
  const [header = ""] = token.split(".");
  return JSON.parse(Buffer.from(header, "base64url").toString()).kid;
}
