import { Paper, Stack, Title } from "@mantine/core";
import type { ReactNode } from "react";
import { Brand, useBrandTitle } from "./brand.tsx";

interface Props {
  readonly title: string;
  readonly children: ReactNode;
}

/** What is shown instead of the keys. */
export function MessagePage({ title, children }: Props) {
  useBrandTitle(title);
  return (
    <Paper component="main" withBorder p="xl" mx="auto" my="xl" w="calc(100% - 2rem)" maw="32rem">
      <Stack>
        <Brand />
        <Title order={1} size="h3">
          {title}
        </Title>
        {children}
      </Stack>
    </Paper>
  );
}
