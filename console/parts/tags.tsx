import { Badge, Group } from "@mantine/core";

/** Returns texts such as scopes, each in a box; null for none. */
export function tags(texts: readonly string[]) {
  if (texts.length === 0) return null;
  return (
    <Group gap={4}>
      {texts.map((text) => (
        <Badge key={text} variant="default" tt="none" fw={400} maw="100%">
          {text}
        </Badge>
      ))}
    </Group>
  );
}
