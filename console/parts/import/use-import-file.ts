import { useEffect, useRef, useState } from "react";
import { type Columns, missingOf, recognize, rowOptions } from "./columns.ts";
import { type ReadFile, readFile, readHeader } from "./read-file.ts";

interface State {
  readonly file: File | null;
  /** Null until the header is read. */
  readonly columns: Columns | null;
  /** The part of the file that is read, from 0 to 1. */
  readonly part: number;
  /** Null until the whole file is read. */
  readonly read: ReadFile | null;
  readonly error: Error | null;
}

const NONE: State = { file: null, columns: null, part: 0, read: null, error: null };

/** Larger files are for `keyhold keys import`, which does not hold them in memory. */
export const MAX_MEBIBYTES = 32;

/** Reads a file that a person chooses, as soon as all of its columns are known. Nothing outlives the component: the file has secrets. */
export function useImportFile() {
  const [state, setState] = useState(NONE);
  const reading = useRef<AbortController>(null);
  useEffect(() => () => reading.current?.abort(), []);

  /** Reads the file, and stops an earlier reading. */
  const read = async (file: File, columnsOf: () => Promise<Columns> | Columns) => {
    reading.current?.abort();
    reading.current = new AbortController();
    const { signal } = reading.current;
    const change = (changed: Partial<State>) => {
      if (!signal.aborted) setState((before) => ({ ...before, ...changed }));
    };
    change({ ...NONE, file });
    try {
      const columns = await columnsOf();
      change({ columns });
      if (missingOf(columns).length > 0) return;
      change({ read: await readFile(file, rowOptions(columns), { signal, onRead: (part) => change({ part }) }) });
    } catch (error) {
      change({ error: error instanceof Error ? error : new Error(String(error)) });
    }
  };

  const choose = (file: File | null) => {
    reading.current?.abort();
    if (file === null) return setState(NONE);
    if (file.size > MAX_MEBIBYTES * 2 ** 20) return setState({ ...NONE, file });
    void read(file, async () => recognize(await readHeader(file)));
  };
  const setColumns = (columns: Columns) => {
    if (state.file !== null) void read(state.file, () => columns);
  };
  return { ...state, isTooLarge: (state.file?.size ?? 0) > MAX_MEBIBYTES * 2 ** 20, choose, setColumns };
}
