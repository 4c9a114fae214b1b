import { Alert, Button, Code, CopyButton, Group, Stack } from "@mantine/core";
import type { ReactNode } from "react";
import { common } from "../texts/common.ts";
import { useTexts } from "../texts/language.tsx";

interface Props {
  /** Says what the secret is, and that it is shown this once. */
  readonly title: string;
  readonly secret: string;
  readonly children?: ReactNode;
}

/** Shows a secret that cannot be shown again. */
export function SecretOnce({ title, secret, children }: Props) {
  return (
    <Alert color="green" title={title}>
      <Stack gap="xs">
        <CopyableCode label={title} text={secret} />
        {children}
      </Stack>
    </Alert>
  );
}

/** Shows text for a program, with a button that copies it. */
export function CopyableCode({ label, text }: { readonly label: string; readonly text: string }) {
  const t = useTexts(common);
  return (
    <Group gap="xs" align="start" wrap="nowrap">
      <Code block flex={1} className="wrapped">
        {text}
      </Code>
      <CopyButton value={text}>
        {({ copied, copy }) => (
          <Button size="xs" variant="default" onClick={copy} aria-label={`${copied ? t.copied : t.copy}: ${label}`}>
            {copied ? t.copied : t.copy}
          </Button>
        )}
      </CopyButton>
    </Group>
  );
}
