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
  const wanted = [storedLanguage(), ...navigator.languages.map((name) => name.slice(0, 2))];
  return wanted.find(isLanguage) ?? "en";
}

/** In a frame, browsers may deny access to the storage by an exception. */
function storedLanguage(): string | null {
  try {
    return localStorage.getItem(STORED);
  } catch {
    return null;
  }
}

function storeLanguage(language: Language): void {
  try {
    localStorage.setItem(STORED, language);
  } catch {
    // The choice then lasts as long as the page.
  }
}

/** Provides the language that was chosen in this browser before, or else the first of the browser's that the console has. */
export function LanguageProvider({ children }: { readonly children: ReactNode }) {
  const [language, setLanguage] = useState(initialLanguage);
  useEffect(() => {
    document.documentElement.lang = language;
  }, [language]);
  const choose = (next: Language) => {
    storeLanguage(next);
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
