/** Secrets, and the search for them in texts, in whatever form they may stand there. */
export class Secrets {
  readonly #forms = new Map<string, string>();
  readonly #secrets = new Set<string>();

  /** Adds a secret and answers it; `what` says in a finding which it was. */
  add(secret: string, what: string): string {
    if (secret.length < 16) throw new Error(`${what} is too short to be distinguished from chance`);
    this.#secrets.add(secret);
    for (const form of formsOf(secret)) this.#forms.set(form, what);
    return secret;
  }

  get size(): number {
    return this.#secrets.size;
  }

  /** The text without the secrets that it may show. */
  static without(text: string, shown: readonly string[]): string {
    return shown.reduce((rest, secret) => rest.replaceAll(secret, "<shown>"), text);
  }

  /** What was found and around what text, without the secret itself. */
  foundIn(text: string): string[] {
    const found = [...this.#forms].flatMap(([form, what]) => {
      const at = text.indexOf(form);
      return at === -1 ? [] : [`${what} after …${text.slice(Math.max(0, at - 80), at)}`];
    });
    return [...new Set(found)];
  }
}

/** Each half of the secret, as text and in the codings that a log, a URL, a driver or PostgreSQL may give it. */
function formsOf(secret: string): string[] {
  const middle = Math.floor(secret.length / 2);
  return [secret.slice(0, middle), secret.slice(middle)].flatMap((half) => {
    const bytes = Buffer.from(half);
    return [
      half,
      encodeURIComponent(half),
      JSON.stringify(half).slice(1, -1),
      [...half].reverse().join(""),
      bytes.toString("hex"),
      bytes.toString("hex").toUpperCase(),
      // As pino writes a Buffer.
      [...bytes].join(","),
      ...[0, 1, 2].flatMap((offset) => base64At(bytes, offset)),
    ];
  });
}

/** The digits of base64 that stand for these bytes alone, when so many others come before. */
function base64At(bytes: Buffer, offset: number): string[] {
  const whole = Buffer.concat([Buffer.alloc(offset), bytes]);
  const [first, last] = [Math.ceil((offset * 8) / 6), Math.floor((whole.length * 8) / 6)];
  return [whole.toString("base64").slice(first, last), whole.toString("base64url").slice(first, last)];
}
