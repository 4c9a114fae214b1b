import { Code, ConnectError } from "@connectrpc/connect";
import { toConnectError } from "../../api/errors.ts";
import type { AdmittedCall } from "../../api/rpc.ts";
import type { MaybePromise } from "../../lib/maybe-promise.ts";
import { codeName } from "../calls.ts";
import type { LaneCall } from "./call.ts";
import type { Answer, BodyReader } from "./exchange.ts";
import type { Response, Route } from "./route.ts";

/** Serves a call from its header to its answer: in one turn of the event loop, where nothing is to be waited for. */
export function serve(route: Route, call: LaneCall): void {
  new Serving(route, call).begin();
}

/** Node's timers take no more, in milliseconds. */
const MAX_TIMER = 2 ** 31 - 1;

/** One call on its way. Its steps are methods: a closure for each would cost more than the step. */
class Serving implements BodyReader {
  readonly #route: Route;
  readonly #call: LaneCall;
  #admission: AdmittedCall | undefined;
  /** In milliseconds. */
  #timeout: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(route: Route, call: LaneCall) {
    this.#route = route;
    this.#call = call;
  }

  /** Who calls is asked before what they send is read. */
  begin(): void {
    try {
      const admission = this.#route.rpc.admit(this.#call);
      if (admission instanceof Promise) this.#awaitAdmission(admission);
      else this.#read(admission);
    } catch (error) {
      this.#refuseUnread(error);
    }
  }

  #awaitAdmission(admission: Promise<AdmittedCall>): void {
    admission.then((known) => this.#read(known)).catch((error: unknown) => this.#refuseUnread(error));
  }

  #read(admission: AdmittedCall): void {
    const { exchange } = this.#call;
    this.#admission = admission;
    this.#timeout = this.#route.timeout(exchange);
    exchange.readBody(this.#route.maxBodyBytes, this);
  }

  onBody(bytes: Uint8Array): void {
    try {
      if (this.#admission === undefined) return;
      const request = this.#route.decode(bytes);
      this.#requireTime();
      const response = this.#route.rpc.invoke(request, this.#admission);
      if (response instanceof Promise) this.#wait(response);
      else this.#answer(response);
    } catch (error) {
      this.#refuse(error);
    }
  }

  onTooLarge(): void {
    this.#refuse(this.#route.tooLarge());
  }

  onGone(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#call.abort(new ConnectError("the caller went away", Code.Canceled));
    this.#call.add({ code: codeName(Code.Canceled) });
    this.#call.finish(CLIENT_CLOSED_REQUEST);
  }

  /** What has not begun at the caller's deadline does not begin. */
  #requireTime(): void {
    if (this.#timeout !== undefined && this.#call.elapsed() >= this.#timeout) throw late();
  }

  /** At the deadline the caller is told; what is under way goes on to its end. */
  #wait(response: Promise<Response>): void {
    this.#call.exchange.onGone(() => this.onGone());
    if (this.#timeout !== undefined) {
      const left = Math.min(this.#timeout - this.#call.elapsed(), MAX_TIMER);
      this.#timer = setTimeout(() => this.#giveUp(), left);
    }
    response.then((known) => this.#answer(known)).catch((error: unknown) => this.#refuse(error));
  }

  #giveUp(): void {
    const error = late();
    this.#call.abort(error);
    this.#refuse(error);
  }

  #answer(response: Response): void {
    this.#write(() => this.#route.answer(this.#call, response));
  }

  #refuseUnread(error: unknown): void {
    this.#call.exchange.dropBody();
    this.#refuse(error);
  }

  #refuse(error: unknown): void {
    this.#write(() => this.#route.refuse(this.#call, error));
  }

  /** Only what is compressed has to be waited for. */
  #write(make: () => MaybePromise<Answer>): void {
    if (this.#isOver) return;
    try {
      const answer = make();
      if (answer instanceof Promise) answer.then((known) => this.#send(known)).catch((error) => this.#fail(error));
      else this.#send(answer);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** An answer that could not be written. */
  #fail(cause: unknown): void {
    this.#call.fault(cause);
    const error = toConnectError(new Error("an answer could not be written", { cause }));
    void Promise.resolve(this.#route.refuse(this.#call, error)).then((answer) => this.#send(answer));
  }

  #send(answer: Answer): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.#call.exchange.respond(answer);
    this.#call.finish(answer.status);
  }
}

/** The status of nginx for it, which nobody reads but the log. */
const CLIENT_CLOSED_REQUEST = 499;

function late(): ConnectError {
  return new ConnectError("the operation timed out", Code.DeadlineExceeded);
}
