/** Searches texts for secrets in any encoding. */
export class Secrets {
  readonly #forms = new Map<string, string>();
  readonly #secrets = new Set<string>();

  /** Adds and returns a secret; `what` describes it in a finding. */
  add(secret: string, what: string): string {
    if (secret.length < 16) throw new Error(`${what} is too short for a reliable search`);
    this.#secrets.add(secret);
    for (const form of formsOf(secret)) this.#forms.set(form, what);
    return secret;
  }

  get size(): number {
    return this.#secrets.size;
  }

  /** Returns the text without the secrets that it may contain. */
  static without(text: string, shown: readonly string[]): string {
    return shown.reduce((rest, secret) => rest.replaceAll(secret, "<shown>"), text);
  }

  /** Returns the descriptions of the found secrets with the text before them, without the secrets themselves. */
  foundIn(text: string): string[] {
    const found = [...this.#forms].flatMap(([form, what]) => {
      const at = text.indexOf(form);
      return at === -1 ? [] : [`${what} after …${text.slice(Math.max(0, at - 80), at)}`];
    });
    return [...new Set(found)];
  }
}

/** Returns each half of the secret, as text and in the encodings of logs, URLs, drivers and PostgreSQL. */
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

/** Returns the base64 digits that depend only on these bytes, at this offset. */
function base64At(bytes: Buffer, offset: number): string[] {
  const whole = Buffer.concat([Buffer.alloc(offset), bytes]);
  const [first, last] = [Math.ceil((offset * 8) / 6), Math.floor((whole.length * 8) / 6)];
  return [whole.toString("base64").slice(first, last), whole.toString("base64url").slice(first, last)];
}
