import { FORWARD_AUTH, forwardAuth } from "../../support/forward-auth.ts";
import type { Seeded } from "../../support/seeded.ts";
import type { Family } from "../case.ts";
import { isAllowed } from "../faults.ts";

/** Header fields that decide, or that carry the decision. */
const FIELDS = [
  "Authorization",
  "X-Api-Key",
  "X-Forwarded-For",
  "X-Forwarded-Uri",
  "X-Forwarded-Method",
  "X-Keyhold-Authorization",
  "X-Keyhold-Actor-Id",
  "X-Keyhold-Key-Id",
  "X-Keyhold-Scopes",
  "Content-Length",
  "Host",
  "Cookie",
];

const OPTIONS = ["keep-alive", "close", "upgrade", "TE", "", " ", ";", '"', "x".repeat(300), "\x80"];

const CASES: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => text.toLowerCase(),
  (text) => text.toUpperCase(),
  (text) => `${text} `,
  (text) => `\t${text}`,
];

/** Requests of gateways whose `Connection` names header fields: no such list changes the decision, or what identifies the key. */
export const hops: Family = {
  name: "hops",
  parallel: 16,
  weight: 1,
  generate(random, { credentials }) {
    const credential = random.pick([credentials.issued, credentials.imported, credentials.jwt, "unknown"]);
    const query = random.pick(["", "?required_scopes=read", "?required_scopes=none", "?audience=billing"]);
    const connection = Array.from({ length: 1 + random.below(3) }, () => listOf(random));
    const name = random.pick(["Connection", "connection", "Proxy-Connection", "Keep-Alive"]);
    return {
      kind: `${name}${connection.length > 1 ? " repeated" : ""}`,
      description: () => `GET ${FORWARD_AUTH}${query}\n${JSON.stringify({ [name]: connection })}`,
      async run(target) {
        const own = target.token === undefined ? [] : [["X-Keyhold-Authorization", `Bearer ${target.token}`] as const];
        const headers = [...own, ["Authorization", `Bearer ${credential}`] as const];
        const [plain, listed] = [
          await forwardAuth(target, { suffix: query, headers }),
          await forwardAuth(target, {
            suffix: query,
            headers: [...headers, ...connection.map((value) => [name, value] as const)],
          }),
        ];
        const identity = ({ status, headers }: typeof plain) =>
          JSON.stringify([status, ...Object.entries(headers).filter(([field]) => field.startsWith("x-keyhold-"))]);
        return [
          ...(isAllowed(listed.status) ? [] : [`answered a fault: ${listed.text}`]),
          ...(listed.status === 400 || identity(listed) === identity(plain)
            ? []
            : [`decided ${identity(listed)} instead of ${identity(plain)}`]),
        ];
      },
    };
  },
};

function listOf(random: Seeded): string {
  return Array.from({ length: 1 + random.below(6) }, () =>
    random.pick(CASES)(random.pick([...FIELDS, ...OPTIONS])),
  ).join(random.pick([",", ", ", " ,", ",,"]));
}
