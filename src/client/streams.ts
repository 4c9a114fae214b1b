import type { DescMethod, MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { RetryInfoSchema } from "../../gen/google/rpc/error_details_pb.js";
import {
  ApiKeysService,
  type StreamVerifyRequestSchema,
  type StreamVerifyResponse,
  type VerifyApiKeyRequestSchema,
  type VerifyApiKeyResponse,
} from "../../gen/keyhold/v2alpha1/api_keys_pb.js";
import { type RequestHeaders, withUnary } from "./transport.ts";

const { verifyApiKey, streamVerify } = ApiKeysService.method;

type Request = MessageInitShape<typeof VerifyApiKeyRequestSchema>;

/** Milliseconds after which a stream without calls is ended: an open stream would keep the process alive. */
const IDLE_TIME = 1_000;

/**
 * Sends the calls of `VerifyApiKey` over one stream of `StreamVerify`, which is opened by the first call and whenever it has ended. Calls with
 * headers of their own stay calls of their own, and so do all calls to a server that has no `StreamVerify`. When the stream is lost, its
 * calls reject with UNAVAILABLE, upon which they are retried.
 */
export function withStream(transport: Transport): Transport {
  let stream: VerificationStream | undefined;
  let isSupported = true;
  return withUnary(transport, async (method, signal, timeoutMs, header, input, values) => {
    const unary = () => transport.unary(method, signal, timeoutMs, header, input, values);
    const isStreamed = isSupported && (method as DescMethod) === verifyApiKey && isEmpty(header);
    if (!isStreamed) return unary();
    if (stream === undefined || stream.isOver) stream = new VerificationStream(transport);
    try {
      const message = await stream.verify(input as Request, timeoutMs, signal);
      const common = { stream: false, service: method.parent, header: new Headers(), trailer: new Headers() } as const;
      return { ...common, method, message: message as never };
    } catch (error) {
      if (ConnectError.from(error).code !== Code.Unimplemented) throw error;
      isSupported = false;
      return unary();
    }
  });
}

function isEmpty(header: RequestHeaders): boolean {
  return header === undefined || new Headers(header).keys().next().done === true;
}

interface Waiting {
  resolve(response: VerifyApiKeyResponse): void;
  reject(error: ConnectError): void;
  /** Stops waiting for the deadline and the signal of the call. */
  release(): void;
}

class VerificationStream {
  /** Whether it takes no further calls. */
  isOver = false;
  readonly #waiting = new Map<number, Waiting>();
  readonly #unsent: MessageInitShape<typeof StreamVerifyRequestSchema>[] = [];
  /** Ids wrap after 2^32 calls, when the first ones are long answered. */
  #lastId = 0;
  /** Whether the server has accepted the caller. */
  #isAccepted = false;
  #wake: () => void = () => {};
  #idle: ReturnType<typeof setTimeout> | undefined;

  constructor(transport: Transport) {
    void this.#run(transport);
  }

  verify(request: Request, timeoutMs = 0, signal?: AbortSignal): Promise<VerifyApiKeyResponse> {
    this.#lastId = (this.#lastId + 1) >>> 0;
    const id = this.#lastId;
    clearTimeout(this.#idle);
    return new Promise<VerifyApiKeyResponse>((resolve, reject) => {
      const abort = () => this.#take(id)?.reject(ConnectError.from(signal?.reason, Code.Canceled));
      const late = () => this.#take(id)?.reject(new ConnectError("the operation timed out", Code.DeadlineExceeded));
      const timer = timeoutMs > 0 ? setTimeout(late, timeoutMs) : undefined;
      signal?.addEventListener("abort", abort);
      const release = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
      };
      this.#waiting.set(id, { resolve, reject, release });
      this.#unsent.push({ id, request });
      this.#wake();
      if (signal?.aborted) abort();
    });
  }

  /** Returns the call with this id, which then waits no longer; undefined if it does not wait. */
  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    waiting?.release();
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) {
      clearTimeout(this.#idle);
      this.#idle = setTimeout(() => this.#close(), IDLE_TIME);
    }
    return waiting;
  }

  async #run(transport: Transport): Promise<void> {
    let error: unknown;
    try {
      const { message } = await transport.stream(streamVerify, undefined, 0, undefined, this.#requests());
      for await (const answer of message) this.#answer(answer);
    } catch (reason) {
      error = reason;
    }
    this.#end(error);
  }

  /** Yields what is to be sent, until the stream is over. */
  async *#requests() {
    while (!this.isOver) {
      yield* this.#unsent.splice(0);
      if (this.#unsent.length === 0 && !this.isOver) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    }
  }

  #answer({ id, result }: StreamVerifyResponse): void {
    this.#isAccepted = true;
    const waiting = this.#take(id);
    if (result.case === "response") waiting?.resolve(result.value);
    else waiting?.reject(toError(result));
  }

  #close(): void {
    this.isOver = true;
    this.#wake();
  }

  #end(reason: unknown): void {
    const error = reason === undefined ? lost() : ConnectError.from(reason, Code.Unavailable);
    // The token may have been replaced since the stream was opened with it.
    const isOutdated = this.#isAccepted && error.code === Code.Unauthenticated;
    for (const id of this.#waiting.keys()) this.#take(id)?.reject(isOutdated ? lost(error) : error);
    clearTimeout(this.#idle);
    this.#close();
  }
}

function lost(cause?: ConnectError): ConnectError {
  return new ConnectError("the stream of verifications ended", Code.Unavailable, undefined, undefined, cause);
}

/** Returns the error of one verification, like that of a call: with when to retry, by which retries wait. */
function toError({ value }: Exclude<StreamVerifyResponse["result"], { case: "response" }>): ConnectError {
  if (value === undefined) return new ConnectError("the answer has no result", Code.Internal);
  const error = new ConnectError(value.message, value.code);
  error.details = value.details.map(({ typeUrl, value: bytes }) => ({
    type: typeUrl.slice(typeUrl.lastIndexOf("/") + 1),
    value: bytes,
  }));
  const [retry] = error.findDetails(RetryInfoSchema);
  if (retry?.retryDelay !== undefined) error.metadata.set("retry-after", String(retry.retryDelay.seconds));
  return error;
}
