import type { MessageInitShape } from "@bufbuild/protobuf";
import { pino } from "pino";
import { onTestFinished, vi } from "vitest";
import { AuditService } from "../../gen/keyhold/v2alpha1/audit_pb.js";
import type { StreamHandler } from "../../src/api/row.ts";
import { createGuard } from "../../src/auth/guard.ts";
import { unauthenticated } from "../../src/auth/rejected-credential.ts";
import { invalidArgument } from "../../src/domain/errors.ts";
import { UNRESTRICTED } from "../../src/domain/principal.ts";
import { createServer, type ServerOptions } from "../../src/transport/server.ts";
import { bareServer } from "../support/bare-server.ts";
import { bearer } from "../support/guarded.ts";
import { linesOf } from "../support/log-lines.ts";

const { watchAuditEvents: method } = AuditService.method;
/** The RPC of all streams. */
export const RPC = "keyhold.v2alpha1.AuditService/WatchAuditEvents";

type Response = MessageInitShape<typeof method.output>;

/** The streams of a test, each with all responses that the test pushes. */
class Source {
  readonly #responses: Response[] = [];
  #failure: Error | undefined;
  readonly #waiting = new Set<() => void>();
  /** Of streams that were opened. */
  readonly signals: AbortSignal[] = [];
  readonly requests: unknown[] = [];
  pulled = 0;
  returned = 0;
  isOver = false;
  /** Whether a wait goes on after the signal, against the contract. */
  ignoresSignal = false;

  push(...responses: Response[]): void {
    this.#responses.push(...responses);
    this.#wake();
  }

  fail(error: Error): void {
    this.#failure = error;
    this.#wake();
  }

  end(): void {
    this.isOver = true;
    this.#wake();
  }

  readonly handler: StreamHandler<typeof method> = (request) => {
    if (request.filter === "invalid") throw invalidArgument("filter", "is invalid");
    return (_principal, _call, signal) => {
      this.signals.push(signal);
      this.requests.push(request);
      return this.#stream(signal);
    };
  };

  async *#stream(signal: AbortSignal): AsyncGenerator<Response> {
    let sent = 0;
    try {
      for (;;) {
        const next = this.#responses[sent];
        if (next !== undefined) {
          sent++;
          this.pulled++;
          yield next;
        } else if (this.#failure !== undefined) throw this.#failure;
        else if (this.isOver || signal.aborted) return;
        else await this.#pushed(signal);
      }
    } finally {
      this.returned++;
    }
  }

  #pushed(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.add(resolve);
      if (!this.ignoresSignal) signal.addEventListener("abort", () => resolve());
    });
  }

  #wake(): void {
    for (const resume of this.#waiting) resume();
    this.#waiting.clear();
  }
}

export const event = (seq: number, reason = ""): Response => ({
  auditEvent: { seq: BigInt(seq), reason },
  resumeToken: `after-${seq}`,
});
export const heartbeat = (seq: number): Response => ({ resumeToken: `after-${seq}` });

/** Starts a server with streams, whose only caller the test may change. */
export async function start(options: Partial<ServerOptions> = {}) {
  const source = new Source();
  const caller = { isValid: true, scopes: ["keyhold:audit"] };
  const lines: string[] = [];
  const log = () => linesOf(lines.join(""));
  const guard = createGuard({
    authenticators: [
      () => {
        if (!caller.isValid) throw unauthenticated("the token was revoked", { reason: "KEY_REVOKED" });
        return { method: "admin-token", subject: "auditor", scopes: caller.scopes, restrictions: UNRESTRICTED };
      },
    ],
    allowUnauthenticated: false,
  });
  const server = await createServer({
    ...bareServer(),
    streams: [{ method, policy: "keyhold:audit", idempotency: "no side effects", handler: source.handler }],
    guard,
    logger: pino({ base: null }, { write: (line: string) => void lines.push(line) }),
    ...options,
  });
  const url = await server.listen({ host: "127.0.0.1", port: 0, listenTextResolver: () => "" });
  onTestFinished(() => server.close());
  const line = (id: string) =>
    vi.waitFor(() => {
      const found = log().find(({ reqId, msg }) => reqId === id && msg === "request");
      if (found === undefined) throw new Error("not logged yet");
      return found;
    });
  return { source, caller, server, url, log, line };
}

export const AUTHORIZED = bearer("token");
