import { Group, Progress, Stack, Text } from "@mantine/core";
import { Fragment } from "react";
import { importTexts } from "../../texts/import.ts";
import { useLanguage, useTexts } from "../../texts/language.tsx";
import type { ReadFile } from "./read-file.ts";
import type { Run } from "./use-import-run.ts";

/** How far the import is, and its results. */
export function ImportProgress({ run, read }: { readonly run: Run; readonly read: ReadFile }) {
  const t = useTexts(importTexts);
  const { language } = useLanguage();
  const { status, done, imported, existing, failures } = run;
  const total = read.items.length;
  const results: readonly (readonly [string, number])[] = [
    [t.imported, imported],
    [t.existing, existing],
    [t.failed, failures.length + read.failures.length],
    [t.notSent, total - done],
  ];
  return (
    <Stack gap="xs">
      <Group justify="space-between">
        <Text role="status" fw={600}>
          {t.statuses[status]}
        </Text>
        <Text size="sm">{t.done(done, total)}</Text>
      </Group>
      <Progress value={(100 * done) / total} aria-label={t.progress} />
      <dl className="facts">
        {results.map(([name, count]) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd>{count.toLocaleString(language)}</dd>
          </Fragment>
        ))}
      </dl>
    </Stack>
  );
}
