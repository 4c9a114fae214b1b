import { defaultLimits } from "../../../src/transport/listener/limits.ts";
import { withQuery } from "../../support/conformance.ts";
import { paths } from "../../support/rest.ts";
import { type Seeded, seeded } from "../../support/seeded.ts";
import { send } from "../../support/wire.ts";
import vectors from "../../vectors/filter.json" with { type: "json" };
import type { Family, HostileCase } from "../case.ts";
import { chooseDamage } from "../damage.ts";
import { bodyFaults, isAllowed } from "../faults.ts";
import type { Target } from "../target.ts";

/** List requests whose filters, page sizes and page tokens are unusual, altered, or of another list. */
export const lists: Family = {
  name: "lists",
  parallel: 16,
  weight: 1,
  generate: (random) => new ListCase(random),
};

const FILTERS = [...vectors.valid, ...vectors.invalid].map(({ filter }) => filter);

const PAGE_SIZES = [
  "",
  "0",
  "1",
  "2",
  "1000",
  "1001",
  "2147483647",
  "2147483648",
  "-1",
  "1.5",
  "1e3",
  "a",
  " 1",
  "0x1",
  "٣",
];

/** Compositions of filters. */
const COMPOSITIONS: Readonly<Record<string, (random: Seeded) => string>> = {
  known: (random) => random.pick(FILTERS),
  damaged: (random) => chooseDamage(random)(Buffer.from(random.pick(FILTERS))).toString("utf8"),
  joined: (random) =>
    Array.from({ length: 2 + random.below(20) }, () => random.pick(FILTERS)).join(
      random.pick([" AND ", " OR ", " ", "-"]),
    ),
  nested: (random) => {
    const depth = 1 + random.below(500);
    return `${"(".repeat(depth)}${random.pick(FILTERS)}${")".repeat(depth)}`;
  },
  negated: (random) =>
    `${random.pick(["NOT ", "-", "--", "NOT NOT "]).repeat(1 + random.below(200))}${random.pick(FILTERS)}`,
  "a long text": (random) => `name="${random.pick(["a", "*", "\\\\", "%", "_", "é"]).repeat(random.below(4_000))}"`,
  "many alternatives": (random) =>
    Array.from({ length: random.below(300) }, (_, place) => `actor_id=u${place}`).join(" OR "),
};

/** Alterations of a page token. */
const TOKEN_CHANGES: Readonly<Record<string, (token: string, random: Seeded) => string>> = {
  none: () => "",
  same: (token) => token,
  "damaged bytes": (token, random) => chooseDamage(random)(Buffer.from(token, "base64url")).toString("base64url"),
  "another character": (token, random) => {
    const place = random.below(Math.max(1, token.length));
    return `${token.slice(0, place)}${random.pick(["A", "b", "9", "-", "=", "%"])}${token.slice(place + 1)}`;
  },
  longer: (token) => `${token}A`,
  "no token": (_, random) => random.pick(["a", "null", "%00", "A".repeat(2_000), "{}", "0198b2a4"]),
};

/** Maximum size of the rest of a header, in bytes. */
const OTHER_FIELDS = 1_000;

const TOO_LONG = { status: 431, text: "", body: undefined };

class ListCase implements HostileCase {
  readonly kind: string;
  readonly #path: string;
  readonly #filter: string;
  readonly #size: string;
  readonly #change: (token: string) => string;
  /** Whether the token is still that of this list. */
  readonly #isSame: boolean;

  constructor(random: Seeded) {
    const [composition, compose] = random.pick(Object.entries(COMPOSITIONS));
    const [name, change] = random.pick(Object.entries(TOKEN_CHANGES));
    const seed = random.below(2 ** 31);
    this.#path = random.pick([paths.issued, paths.imported]);
    this.#filter = random.below(3) === 0 ? "" : compose(random).toWellFormed();
    this.#size = random.pick(PAGE_SIZES);
    this.#change = (token) => change(token, seeded(seed));
    this.#isSame = name === "none" || name === "same";
    this.kind = `filter ${this.#filter === "" ? "none" : composition}, page token ${name}`;
  }

  description(): string {
    return `${this.kind}\n${JSON.stringify({ path: this.#path, page_size: this.#size, filter: this.#filter })}`;
  }

  async run(target: Target): Promise<readonly string[]> {
    const headers = Object.fromEntries(target.credentials);
    const list = async (query: Record<string, string>) => {
      const path = withQuery(this.#path, query);
      // Over TLS, fetch uses HTTP/2, where a stream with too large a header is reset without a response.
      if (target.tls && path.length > defaultLimits.maxHeaderBytes - OTHER_FIELDS) return TOO_LONG;
      return send(target.url + path, "GET", undefined, headers);
    };
    const filter = this.#isSame ? this.#filter : "";
    const first = await list({ page_size: "1", filter });
    const token: string = first.body?.next_page_token ?? "";
    const changed = this.#change(token);
    const answer = await list({ page_size: this.#size, filter: this.#filter, page_token: changed });
    const seen = `${answer.status} ${answer.text.slice(0, 500)} for ${JSON.stringify({ changed })}`;
    const isForged = !this.#isSame && changed !== "" && changed !== token;
    return [first, answer].flatMap(({ status, text }) => [
      ...(isAllowed(status) ? [] : [`answered a fault: ${seen}`]),
      ...bodyFaults(text),
      ...(status === 200 || status === 400 || status >= 414 ? [] : [`the status is neither 200 nor 400: ${seen}`]),
      ...(answer.status === 200 && isForged ? [`accepted an invalid page token: ${seen}`] : []),
    ]);
  }
}
