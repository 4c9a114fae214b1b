import { Table, Text } from "@mantine/core";
import { type Range, useWindowVirtualizer } from "@tanstack/react-virtual";
import { memo, type ReactNode, useCallback, useLayoutEffect, useRef, useState } from "react";
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
  // With another function, the virtualizer computes the place of each row again: scrolling would take time for each row that is loaded.
  const getItemKey = useCallback((index: number) => idOf(rows[index] as Row), [rows, idOf]);
  const [rangeExtractor] = useState(keepUntilScrolled);
  const virtualizer = useWindowVirtualizer({
    count: rows.length,
    estimateSize: () => ROW_HEIGHT,
    overscan: 5,
    rangeExtractor,
    scrollMargin: offset,
    getItemKey,
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
      <Table aria-label={label} aria-rowcount={onEnd === undefined ? rows.length + 1 : -1}>
        <Table.Thead>
          <Table.Tr>
            {columns.map(({ header, isSecondary }) => (
              <Table.Th key={header} scope="col" className={isSecondary === true ? SECONDARY : undefined}>
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

/**
 * Returns which rows are in the document: those in the window and `overscan` on each side. Until the list is scrolled by half a window, rows come
 * and none leaves: one row can change the widths of the columns, and so the heights of the others, and they would come and go without end.
 */
function keepUntilScrolled() {
  let [anchor, first, last] = [0, 0, -1];
  return ({ startIndex, endIndex, overscan, count }: Range): number[] => {
    const isScrolled = Math.abs(startIndex - anchor) > (endIndex - startIndex) / 2;
    if (isScrolled) [anchor, first, last] = [startIndex, startIndex, endIndex];
    first = Math.max(0, Math.min(first, startIndex - overscan));
    last = Math.min(count - 1, Math.max(last, endIndex + overscan));
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  };
}

interface RowProps<Row> {
  readonly index: number;
  readonly row: Row;
  readonly columns: readonly Column<Row>[];
  readonly measure: (element: HTMLElement | null) => void;
}

const { tr, td } = Table.classes;

/** Mantine's class for what is left out on narrow screens. */
const SECONDARY = "mantine-visible-from-md";

/**
 * Scrolling renders only the rows that come into sight. They have the classes of Mantine's components, which take several times as long to
 * render: a frame has room for few of them.
 */
const RowOf = memo(function RowOf<Row>({ index, row, columns, measure }: RowProps<Row>) {
  return (
    <tr className={tr} data-hover data-with-row-border data-index={index} aria-rowindex={index + 2} ref={measure}>
      {columns.map(({ header, cell, isSecondary }) => (
        <td key={header} className={isSecondary === true ? `${td} ${SECONDARY}` : td}>
          <div className="cell">{cell(row)}</div>
        </td>
      ))}
    </tr>
  );
}) as <Row>(props: RowProps<Row>) => ReactNode;

/** The place of rows that are not in the document. */
function Spacer({ height }: { readonly height: number }) {
  return <tr style={{ height }} />;
}
