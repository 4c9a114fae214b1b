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

/** The path of the page that was shown last. */
let lastPath: string | undefined;

/** Moves the focus to the heading after a navigation, so that screen readers name the page and the keyboard continues there. */
function focusAfterNavigation(heading: HTMLElement | null): void {
  if (heading === null) return;
  const { pathname } = window.location;
  // The router scrolls.
  if (lastPath !== undefined && lastPath !== pathname) heading.focus({ preventScroll: true });
  lastPath = pathname;
}

/** A page with its heading, which is also the title of the document. */
export function Page({ title, actions, children }: Props) {
  useTitle(title);
  return (
    <Stack>
      <Group justify="space-between">
        <Title
          key={title}
          ref={focusAfterNavigation}
          order={1}
          size="h2"
          tabIndex={-1}
          style={{ overflowWrap: "anywhere" }}
        >
          {title}
        </Title>
        <Group gap="xs">{actions}</Group>
      </Group>
      {children}
    </Stack>
  );
}
