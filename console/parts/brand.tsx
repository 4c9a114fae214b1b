import { Group, Text } from "@mantine/core";

export function Brand() {
  return (
    <Group gap="xs" wrap="nowrap">
      <img src="/console/icon.svg" alt="" width={24} height={24} />
      <Text fw={700}>Keyhold</Text>
    </Group>
  );
}
