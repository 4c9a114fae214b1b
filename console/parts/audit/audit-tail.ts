import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { useTransport } from "@connectrpc/connect-query";
import { useDocumentVisibility } from "@mantine/hooks";
import { useEffect, useEffectEvent, useState } from "react";
import { type AuditEvent, AuditService } from "../../../gen/keyhold/v2alpha1/audit_pb.js";
import { refreshSession } from "../../session/query-client.ts";

/** Milliseconds between connections: from the first to the longest, in powers of two. */
const BACKOFF = { first: 1_000, max: 30_000 };

/** Milliseconds. The server sends a heartbeat every 15 s. */
const SILENCE = 40_000;

/** Events that one connection may send. Then the list, which reads them in pages, has them, and the tail begins anew. */
const MAX_EVENTS = 500;

/** Errors that another attempt does not change. */
const PERMANENT: readonly Code[] = [
  ...[Code.InvalidArgument, Code.OutOfRange, Code.NotFound, Code.FailedPrecondition],
  ...[Code.Unauthenticated, Code.PermissionDenied, Code.Unimplemented],
];

export type TailState = "connecting" | "live" | "failed";

interface Tail {
  /** The events since the list was read, newest first. */
  readonly events: readonly AuditEvent[];
  readonly state: TailState;
  readonly error: Error | null;
}

const BEGINNING: Tail = { events: [], state: "connecting", error: null };

/**
 * Follows the log while `isOn` and the page is visible. A connection that is lost is made again, and continues behind the last event. One that
 * begins anew, as after the page was hidden, begins at the end of the log: `onBegin` reads what was recorded before.
 */
export function useAuditTail(filter: string, isOn: boolean, onBegin: () => void): Tail {
  const transport = useTransport();
  const isRunning = useDocumentVisibility() === "visible" && isOn;
  const [tail, setTail] = useState(BEGINNING);
  const begin = useEffectEvent(onBegin);
  useEffect(() => {
    if (!isRunning) return;
    const controller = new AbortController();
    const { signal } = controller;
    const receivers = {
      onBegin: () => {
        setTail((before) => ({ ...before, events: [] }));
        begin();
      },
      onState: (state: TailState) => setTail((before) => ({ ...before, state })),
      onEvent: (event: AuditEvent) =>
        setTail((before) => ({ ...before, events: [event, ...before.events].slice(0, MAX_EVENTS) })),
    };
    setTail((before) => ({ ...before, state: "connecting", error: null }));
    follow(transport, filter, receivers, signal).catch((cause) => {
      const error = ConnectError.from(cause);
      if (error.code === Code.Unauthenticated) void refreshSession();
      if (!signal.aborted) setTail((before) => ({ ...before, state: "failed", error }));
    });
    return () => controller.abort();
  }, [isRunning, filter, transport]);
  return tail;
}

interface Receivers {
  readonly onBegin: () => void;
  readonly onState: (state: TailState) => void;
  readonly onEvent: (event: AuditEvent) => void;
}

/** Resolves when the signal is aborted, and rejects with an error that another attempt does not change. */
async function follow(transport: Transport, filter: string, receivers: Receivers, signal: AbortSignal): Promise<void> {
  const client = createClient(AuditService, transport);
  let resumeToken = "";
  let failures = 0;
  while (!signal.aborted) {
    const connection = new AbortController();
    const silence = watchdog(() => connection.abort());
    try {
      let received = 0;
      const options = { signal: AbortSignal.any([signal, connection.signal]) };
      for await (const response of client.watchAuditEvents({ filter, resumeToken }, options)) {
        if (signal.aborted) return;
        silence.restart();
        if (resumeToken === "") receivers.onBegin();
        receivers.onState("live");
        failures = 0;
        resumeToken = response.resumeToken;
        if (response.auditEvent !== undefined) receivers.onEvent(response.auditEvent);
        if (++received === MAX_EVENTS) {
          resumeToken = "";
          break;
        }
      }
    } catch (error) {
      if (!signal.aborted && PERMANENT.includes(ConnectError.from(error).code)) throw error;
    } finally {
      silence.stop();
      connection.abort();
    }
    if (signal.aborted) return;
    receivers.onState("connecting");
    await wait(Math.min(BACKOFF.max, BACKOFF.first * 2 ** failures++) * (1 + Math.random() / 2), signal);
  }
}

/** Calls a function if `restart` is not called for too long. */
function watchdog(onSilence: () => void) {
  let timer = setTimeout(onSilence, SILENCE);
  const stop = () => clearTimeout(timer);
  const restart = () => {
    stop();
    timer = setTimeout(onSilence, SILENCE);
  };
  return { restart, stop };
}

/** Resolves after these milliseconds, or when the signal is aborted. */
function wait(duration: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, duration);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
