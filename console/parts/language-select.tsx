import { NativeSelect, type NativeSelectProps } from "@mantine/core";
import { LANGUAGES, type Language } from "../texts/catalogue.ts";
import { useLanguage } from "../texts/language.tsx";

/** Chooses the language of the page. */
export function LanguageSelect(props: Pick<NativeSelectProps, "label" | "aria-label" | "size">) {
  const { language, choose } = useLanguage();
  return (
    <NativeSelect
      {...props}
      data={Object.entries(LANGUAGES).map(([value, label]) => ({ value, label }))}
      value={language}
      onChange={({ currentTarget }) => choose(currentTarget.value as Language)}
    />
  );
}
