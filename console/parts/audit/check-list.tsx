import { Badge, Group, List, Text } from "@mantine/core";
import { audit } from "../../texts/audit.ts";
import { useTexts } from "../../texts/language.tsx";
import type { Outcome } from "./audit-proof.ts";

export interface Check {
  readonly outcome: Outcome;
  readonly text: string;
}

const COLORS: Readonly<Record<Outcome, string>> = { verified: "green", failed: "red.9", unknown: "gray" };

/** Shows what was checked, and how it ended. */
export function CheckList({ label, checks }: { readonly label: string; readonly checks: readonly Check[] }) {
  const t = useTexts(audit);
  return (
    <List aria-label={label} listStyleType="none" spacing="xs" aria-live="polite">
      {checks.map(({ outcome, text }) => (
        <List.Item key={text}>
          <Group gap="xs" wrap="nowrap" align="start">
            <Badge color={COLORS[outcome]} variant={outcome === "failed" ? "filled" : "light"} flex="0 0 auto">
              {t.outcomes[outcome]}
            </Badge>
            <Text size="sm">{text}</Text>
          </Group>
        </List.Item>
      ))}
    </List>
  );
}
