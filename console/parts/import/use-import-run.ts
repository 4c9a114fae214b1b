import { toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { useEffect, useRef, useState } from "react";
import {
  CreateImportedApiKeyRequestSchema,
  ImportedApiKeysService,
} from "../../../gen/keyhold/v2alpha1/imported_api_keys_pb.js";
import type { RowFailure } from "../../../src/cli/import/records.ts";
import { type Item, isExisting, MAX_ROWS, type Outcome, send } from "../../../src/cli/import/send.ts";

export interface Run {
  readonly status: "ready" | "running" | "paused" | "ended";
  /** The number of the first items whose outcome is known. */
  readonly done: number;
  readonly imported: number;
  readonly existing: number;
  readonly failures: readonly RowFailure[];
  /** Why the server has to be called again. */
  readonly waitsFor: Error | null;
  /** Why the import has paused; null if the person wanted it. */
  readonly error: Error | null;
}

const READY: Run = {
  ...{ status: "ready", done: 0, imported: 0, existing: 0, failures: [] },
  ...{ waitsFor: null, error: null },
};

/** Milliseconds, as in the command. */
const RETRY_FOR = 10 * 60_000;

/**
 * Imports keys, a call at a time. An import that has paused continues with the same `request_id`s, so that no key is imported twice, even if an
 * answer was lost. No cache has the raw keys.
 */
export function useImportRun(items: readonly Item[], onEnd: () => void) {
  const transport = useTransport();
  const [run, setRun] = useState(READY);
  const controller = useRef<AbortController>(null);
  useEffect(() => () => controller.current?.abort(), []);

  const start = async () => {
    controller.current = new AbortController();
    const { signal } = controller.current;
    const client = createClient(ImportedApiKeysService, transport);
    const importedApiKeys = {
      batchCreateImportedApiKeys: (...call: Parameters<typeof client.batchCreateImportedApiKeys>) =>
        client.batchCreateImportedApiKeys(...call).catch(throwRetryable),
    };
    let current: Run = { ...run, status: "running", error: null };
    const change = (changed: Partial<Run>) => {
      current = { ...current, ...changed };
      setRun(current);
    };
    change({});
    const onUnreachable = (waitsFor: Error) => change({ waitsFor });
    try {
      while (current.done < items.length && !signal.aborted) {
        const batch = nextBatch(items, current.done);
        const outcome = await send(batch, { importedApiKeys, retryFor: RETRY_FOR, onUnreachable, signal });
        change(counted(current, batch, outcome));
      }
    } catch (error) {
      if (error !== signal.reason) change({ error: error instanceof Error ? error : new Error(String(error)) });
    }
    change({
      status: current.done === items.length || signal.reason === CANCELLED ? "ended" : "paused",
      waitsFor: null,
    });
    onEnd();
  };
  const stop = (reason: symbol) => {
    controller.current?.abort(reason);
    if (reason === CANCELLED && run.status === "paused") setRun({ ...run, status: "ended" });
  };
  return { run, start: () => void start(), pause: () => stop(PAUSED), cancel: () => stop(CANCELLED) };
}

/** Throws `UNAVAILABLE` if the server was not reached: `fetch` rejects with a `TypeError`. */
function throwRetryable(cause: unknown): never {
  const error = ConnectError.from(cause);
  throw error.cause instanceof TypeError ? new ConnectError(error.rawMessage, Code.Unavailable) : error;
}

const PAUSED = Symbol("paused");
const CANCELLED = Symbol("cancelled");

function counted({ done, imported, existing, failures }: Run, batch: readonly Item[], outcome: Outcome): Partial<Run> {
  const failed = outcome.failures.filter((failure) => !isExisting(failure));
  return {
    done: done + batch.length,
    imported: imported + outcome.imported,
    existing: existing + outcome.failures.length - failed.length,
    failures: [...failures, ...failed],
    waitsFor: null,
  };
}

/** Half of the size that the server accepts, because texts may be longer in JSON. */
const MAX_BYTES = 2 * 2 ** 20;

/** Bytes that a key has more in the response than in the request, at most: ids, times, its creator, warnings. */
const RESPONSE_BYTES = 1024;

/** Returns the items of the next call. */
function nextBatch(items: readonly Item[], start: number): readonly Item[] {
  let [end, bytes] = [start, 0];
  while (end < items.length && end < start + MAX_ROWS) {
    const { request } = items[end] ?? {};
    if (request !== undefined) bytes += toBinary(CreateImportedApiKeyRequestSchema, request).length + RESPONSE_BYTES;
    if (bytes > MAX_BYTES && end > start) break;
    end++;
  }
  return items.slice(start, end);
}
