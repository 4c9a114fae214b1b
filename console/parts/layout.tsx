import { Anchor, AppShell, Burger, Group, ScrollArea } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Outlet, useMatches } from "@tanstack/react-router";
import { useNavigation } from "../navigation.ts";
import { useCan } from "../session/permissions.ts";
import { common } from "../texts/common.ts";
import { useTexts } from "../texts/language.tsx";
import { Brand } from "./brand.tsx";
import { LinkNav } from "./links.tsx";
import { NotPermitted } from "./not-permitted.tsx";
import { SessionMenu } from "./session-menu.tsx";

/** The frame of every page. It offers the pages that the caller may use, and shows no other. */
export function Layout() {
  const t = useTexts(common);
  const can = useCan();
  const [isOpen, { toggle, close }] = useDisclosure(false);
  const requires = useMatches().flatMap(({ staticData }) => staticData.requires ?? []);
  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 220, breakpoint: "sm", collapsed: { mobile: !isOpen } }}
      padding="md"
    >
      <Anchor className="skip-link" href="#content">
        {t.skip}
      </Anchor>
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap">
          <Group gap="sm" wrap="nowrap">
            <Burger
              opened={isOpen}
              onClick={toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label={t.toggleNavigation}
              aria-expanded={isOpen}
            />
            <Brand />
          </Group>
          <SessionMenu />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="xs" aria-label={t.navigation} className={isOpen ? undefined : "closed-navigation"}>
        <ScrollArea>
          {useNavigation().map(({ to, name }) => (
            <LinkNav key={to} to={to} label={t.pages[name]} onClick={close} />
          ))}
        </ScrollArea>
      </AppShell.Navbar>
      <AppShell.Main id="content" tabIndex={-1}>
        {can(...requires) ? <Outlet /> : <NotPermitted />}
      </AppShell.Main>
    </AppShell>
  );
}
