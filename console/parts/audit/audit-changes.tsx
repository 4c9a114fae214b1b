import { type JsonValue, toJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { Code, Table, Text } from "@mantine/core";
import type { AuditChange } from "../../../gen/keyhold/v2alpha1/audit_pb.js";
import { audit } from "../../texts/audit.ts";
import { common } from "../../texts/common.ts";
import { useTexts } from "../../texts/language.tsx";
import { ScrollX } from "../scroll-x.tsx";

/** Shows each changed field of an event, before and after. */
export function AuditChanges({ changes }: { readonly changes: readonly AuditChange[] }) {
  const t = useTexts(audit);
  if (changes.length === 0) return <Text c="dimmed">{t.noChanges}</Text>;
  return (
    <ScrollX label={t.changes}>
      <Table aria-label={t.changes}>
        <Table.Thead>
          <Table.Tr>
            {[t.field, t.before, t.after].map((header) => (
              <Table.Th key={header} scope="col">
                {header}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {changes.map(({ field, before, after }) => (
            <Table.Tr key={field}>
              <Table.Th scope="row">{field}</Table.Th>
              <Table.Td>
                <ChangedValue value={before} />
              </Table.Td>
              <Table.Td>
                <ChangedValue value={after} />
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </ScrollX>
  );
}

function ChangedValue({ value }: { readonly value: Value | undefined }) {
  const { none } = useTexts(common);
  if (value === undefined) return <Text c="dimmed">{none}</Text>;
  return <Code style={{ whiteSpace: "pre-wrap", overflowWrap: "anywhere" }}>{shown(toJson(ValueSchema, value))}</Code>;
}

function shown(value: JsonValue): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}
