/** The texts of another language: the same members, each a text or a function of the same parameters. */
type Translated<T> = {
  readonly [K in keyof T]: T[K] extends string
    ? string
    : T[K] extends (...args: infer A) => string
      ? (...args: A) => string
      : Translated<T[K]>;
};

export const LANGUAGES = { en: "English", de: "Deutsch" } as const;

export type Language = keyof typeof LANGUAGES;

/** The texts of a page or of parts, in each language. */
export type Catalogue<T> = { readonly [L in Language]: Translated<T> };

/** Declares texts. The compiler requires every text in every language. */
export function catalogue<const T>(texts: { readonly en: T; readonly de: Translated<T> }): Catalogue<T> {
  return { en: texts.en as unknown as Translated<T>, de: texts.de };
}

/** Returns a number in a language, with its noun. */
export function counted(language: Language, n: number, one: string, many: string): string {
  return `${n.toLocaleString(language)} ${n === 1 ? one : many}`;
}
