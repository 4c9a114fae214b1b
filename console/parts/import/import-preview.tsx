import { timestampDate } from "@bufbuild/protobuf/wkt";
import { Alert, Stack, Table, Text, Title } from "@mantine/core";
import type { Item } from "../../../src/cli/import/send.ts";
import { common } from "../../texts/common.ts";
import { importTexts } from "../../texts/import.ts";
import { key } from "../../texts/key.ts";
import { useTexts } from "../../texts/language.tsx";
import { ScrollX } from "../scroll-x.tsx";
import { Time } from "../time.tsx";
import type { ReadFile } from "./read-file.ts";

const SHOWN_KEYS = 20;
const SHOWN_LINES = 20;

/** What the file has, and what of it will be imported. */
export function ImportPreview({ read: { items, failures, warnedLines } }: { readonly read: ReadFile }) {
  const t = useTexts(importTexts);
  const actors = new Set(items.map(({ request }) => request.actorId)).size;
  const counts = [
    t.rows(items.length + failures.length),
    t.importable(items.length, actors),
    ...(failures.length > 0 ? [t.notImportable(failures.length)] : []),
  ];
  const others = warnedLines.length > SHOWN_LINES ? ", …" : "";
  return (
    <Stack>
      <Title order={2} size="h4">
        {t.preview}
      </Title>
      <Text role="status">{counts.join(" · ")}</Text>
      {warnedLines.length > 0 && (
        <Alert color="yellow">
          {t.warned(warnedLines.length, warnedLines.slice(0, SHOWN_LINES).join(", ") + others)}
        </Alert>
      )}
      {items.length > SHOWN_KEYS && <Text size="sm">{t.firstKeys(SHOWN_KEYS)}</Text>}
      {items.length > 0 && <FirstKeys items={items.slice(0, SHOWN_KEYS)} />}
    </Stack>
  );
}

function FirstKeys({ items }: { readonly items: readonly Item[] }) {
  const t = useTexts(importTexts);
  const names = useTexts(key);
  const { none, never } = useTexts(common);
  return (
    <ScrollX label={t.preview}>
      <Table aria-label={t.firstKeys(items.length)}>
        <Table.Thead>
          <Table.Tr>
            {[t.line, t.rawKey, names.name, names.actor, names.scopes, names.expires, t.metadata].map((header) => (
              <Table.Th key={header} scope="col">
                {header}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {items.map(({ row, request }) => (
            <Table.Tr key={row.row}>
              <Table.Td>{row.line}</Table.Td>
              <Table.Td ff="monospace">{request.rawKeyHash === undefined ? masked(request.rawKey) : t.hashed}</Table.Td>
              <Table.Td>{request.name}</Table.Td>
              <Table.Td>{request.actorId}</Table.Td>
              <Table.Td>{request.scopes.join(" ") || none}</Table.Td>
              <Table.Td>
                {request.expireTime === undefined ? (
                  (request.ttl ?? never)
                ) : (
                  <Time date={timestampDate(request.expireTime)} />
                )}
              </Table.Td>
              <Table.Td>{pairs(request.metadata) || none}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </ScrollX>
  );
}

function pairs(metadata: Readonly<Record<string, string>>): string {
  return Object.entries(metadata)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");
}

/** Characters of which the last four are a third at most. */
const MIN_HINTED = 12;

/** Returns the last four characters of a raw key, and dots for the others, whose number stays unknown. */
export function masked(rawKey: string): string {
  return `••••${rawKey.length < MIN_HINTED ? "" : rawKey.slice(-4)}`;
}
