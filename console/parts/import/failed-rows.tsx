import { Button, Group, Stack, Text, Title } from "@mantine/core";
import { useClipboard } from "@mantine/hooks";
import type { RowFailure } from "../../../src/cli/import/records.ts";
import { common } from "../../texts/common.ts";
import { importTexts } from "../../texts/import.ts";
import { useTexts } from "../../texts/language.tsx";
import { DataTable } from "../data-table.tsx";

/** The rows that are not imported, and why. No cell of them is shown: any may be a raw key if columns are mixed up. */
export function FailedRows({ failures }: { readonly failures: readonly RowFailure[] }) {
  const t = useTexts(importTexts);
  const { copied } = useTexts(common);
  const clipboard = useClipboard();
  if (failures.length === 0) return null;
  const text = () => failures.map(({ row, message }) => `${row.line}\t${message}\n`).join("");
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Title order={2} size="h4">
          {t.failedRows}
        </Title>
        <Button size="xs" variant="default" title={t.copyHint} onClick={() => clipboard.copy(text())}>
          {clipboard.copied ? copied : t.copyFailed}
        </Button>
      </Group>
      <DataTable
        label={t.failedRows}
        rows={failures}
        idOf={({ row }) => String(row.row)}
        columns={[
          { header: t.line, cell: ({ row }) => row.line },
          {
            header: t.problem,
            cell: ({ message }) => (
              <Text size="sm" style={{ overflowWrap: "anywhere" }}>
                {message}
              </Text>
            ),
          },
        ]}
      />
    </Stack>
  );
}
