import { createContext, type ReactNode, useContext, useEffect, useState } from "react";
import { type Catalogue, LANGUAGES, type Language } from "./catalogue.ts";

interface Choice {
  readonly language: Language;
  choose(language: Language): void;
}

const LanguageContext = createContext<Choice | null>(null);

const STORED = "keyhold-language";

const isLanguage = (name: string | null): name is Language => name !== null && name in LANGUAGES;

function initialLanguage(): Language {
  const wanted = [localStorage.getItem(STORED), ...navigator.languages.map((name) => name.slice(0, 2))];
  return wanted.find(isLanguage) ?? "en";
}

/** Provides the language that was chosen in this browser before, or else the first of the browser's that the console has. */
export function LanguageProvider({ children }: { readonly children: ReactNode }) {
  const [language, setLanguage] = useState(initialLanguage);
  useEffect(() => {
    document.documentElement.lang = language;
  }, [language]);
  const choose = (next: Language) => {
    localStorage.setItem(STORED, next);
    setLanguage(next);
  };
  return <LanguageContext value={{ language, choose }}>{children}</LanguageContext>;
}

export function useLanguage(): Choice {
  const choice = useContext(LanguageContext);
  if (choice === null) throw new Error("there is no LanguageProvider");
  return choice;
}

/** Returns texts in the language of the page. */
export function useTexts<T>(texts: Catalogue<T>) {
  return texts[useLanguage().language];
}
