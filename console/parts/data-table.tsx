import { Table, Text } from "@mantine/core";
import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { memo, type ReactNode, useLayoutEffect, useRef, useState } from "react";
import { common } from "../texts/common.ts";
import { useTexts } from "../texts/language.tsx";
import { ScrollX } from "./scroll-x.tsx";

export interface Column<Row> {
  readonly header: string;
  readonly cell: (row: Row) => ReactNode;
  /** Whether it is left out on narrow screens. */
  readonly isSecondary?: boolean;
}

interface Props<Row> {
  /** Names the table for screen readers. */
  readonly label: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly idOf: (row: Row) => string;
  /** Loads more rows; undefined: these are all. */
  readonly onEnd?: (() => void) | undefined;
}

/** Pixels of a row before it is measured. */
const ROW_HEIGHT = 45;

/** Shows rows of which any number may be loaded: only those near the window are in the document. */
export function DataTable<Row>({ label, columns, rows, idOf, onEnd }: Props<Row>) {
  const t = useTexts(common);
  const container = useRef<HTMLDivElement>(null);
  const [offset, setOffset] = useState(0);
  // After each rendering: what is above the table may have another height.
  useLayoutEffect(() => setOffset(container.current?.offsetTop ?? 0));
  const virtualizer = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => ROW_HEIGHT,
    overscan: 12,
    scrollMargin: offset,
    getItemKey: (index) => idOf(rows[index] as Row),
    onChange: ({ range }) => {
      if (range !== null && range.endIndex >= rows.length - 1) onEnd?.();
    },
  });
  const items = virtualizer.getVirtualItems();
  const before = (items[0]?.start ?? offset) - offset;
  const after = virtualizer.getTotalSize() - ((items.at(-1)?.end ?? offset) - offset);
  if (rows.length === 0) return <Text c="dimmed">{t.noResults}</Text>;
  return (
    <ScrollX label={label} ref={container}>
      <Table aria-label={label} aria-rowcount={onEnd === undefined ? rows.length + 1 : -1} highlightOnHover>
        <Table.Thead>
          <Table.Tr>
            {columns.map(({ header, isSecondary }) => (
              <Table.Th key={header} scope="col" visibleFrom={isSecondary === true ? "md" : undefined}>
                {header}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {before > 0 && <Spacer height={before} />}
          {items.map(({ key, index }) => (
            <RowOf
              key={key}
              index={index}
              row={rows[index] as Row}
              columns={columns}
              measure={virtualizer.measureElement}
            />
          ))}
          {after > 0 && <Spacer height={after} />}
        </Table.Tbody>
      </Table>
    </ScrollX>
  );
}

interface RowProps<Row> {
  readonly index: number;
  readonly row: Row;
  readonly columns: readonly Column<Row>[];
  readonly measure: (element: HTMLElement | null) => void;
}

/** Scrolling renders only the rows that come into sight. */
const RowOf = memo(function RowOf<Row>({ index, row, columns, measure }: RowProps<Row>) {
  return (
    <Table.Tr data-index={index} aria-rowindex={index + 2} ref={measure}>
      {columns.map(({ header, cell, isSecondary }) => (
        <Table.Td key={header} visibleFrom={isSecondary === true ? "md" : undefined}>
          <div className="cell">{cell(row)}</div>
        </Table.Td>
      ))}
    </Table.Tr>
  );
}) as <Row>(props: RowProps<Row>) => ReactNode;

/** The place of rows that are not in the document. */
function Spacer({ height }: { readonly height: number }) {
  return <tr style={{ height }} />;
}
