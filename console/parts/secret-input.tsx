import { PasswordInput, type PasswordInputProps } from "@mantine/core";
import { common } from "../texts/common.ts";
import { useTexts } from "../texts/language.tsx";

/** A field for a secret that no browser is to keep. Its button, which shows what was entered, is reached by the keyboard, too. */
export function SecretInput(props: PasswordInputProps) {
  const t = useTexts(common);
  return (
    <PasswordInput
      autoComplete="off"
      visibilityToggleFocusable
      visibilityToggleButtonProps={{ "aria-label": t.toggleSecret }}
      {...props}
    />
  );
}
