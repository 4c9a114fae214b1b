import { Group, Stack, Title } from "@mantine/core";
import { type ReactNode, useEffect } from "react";

interface Props {
  readonly title: string;
  /** What can be done here, beside the heading. */
  readonly actions?: ReactNode;
  readonly children: ReactNode;
}

/** Sets the title of the document, which never contains a secret. */
export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Keyhold`;
  }, [title]);
}

/** A page with its heading, which is also the title of the document. */
export function Page({ title, actions, children }: Props) {
  useTitle(title);
  return (
    <Stack>
      <Group justify="space-between">
        <Title order={1} size="h2" style={{ overflowWrap: "anywhere" }}>
          {title}
        </Title>
        <Group gap="xs">{actions}</Group>
      </Group>
      {children}
    </Stack>
  );
}
