import { Badge, Group } from "@mantine/core";

/** A long one is on several lines. */
const WRAPPED = { label: { whiteSpace: "normal", overflowWrap: "anywhere" } } as const;

/** Returns texts such as scopes, each in a box; null for none. */
export function tags(texts: readonly string[]) {
  if (texts.length === 0) return null;
  return (
    <Group gap={4}>
      {texts.map((text) => (
        <Badge key={text} variant="default" tt="none" fw={400} maw="100%" miw={0} h="auto" styles={WRAPPED}>
          {text}
        </Badge>
      ))}
    </Group>
  );
}
