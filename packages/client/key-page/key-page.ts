declare global {
  interface HTMLElementTagNameMap {
    "keyhold-key-page": KeyPageElement;
  }
  interface HTMLElementEventMap {
    "keyhold-ended": CustomEvent<void>;
  }
}

/** The element `<keyhold-key-page>`, which shows the key page of Keyhold in a frame. `defineKeyPage` defines it. */
export interface KeyPageElement extends HTMLElement {
  /** The URL of `CreateKeyPageSession`. Another URL loads another session. Reflects the attribute; empty: nothing is loaded. */
  src: string;
  /** The name of the frame for assistive technology, "API keys" by default. Reflects the attribute. */
  label: string;
}

/** Pixels of the height that the page may request. A higher page scrolls in its frame. */
const [MIN_HEIGHT, MAX_HEIGHT] = [200, 20_000];

const STYLE =
  ":host{display:block} :host([hidden]){display:none} iframe{display:block;width:100%;height:400px;border:0}";

/**
 * Defines the element `<keyhold-key-page src="…" label="…">`, unless the name is defined already or there is no DOM.
 *
 * The element is as high as the page. It dispatches `keyhold-ended`, which bubbles, when the session has ended or the link was rejected:
 * set `src` to a new URL when the user asks for it. A `src` that is not an absolute http or https URL loads nothing and reports a `TypeError` as an uncaught
 * error. The server must list the origin of the application in `KEYHOLD_KEY_PAGES_FRAME_ANCESTORS`. A Content-Security-Policy of the
 * application must have the origin of Keyhold in `frame-src`.
 *
 * @example
 * defineKeyPage();
 * const keys = document.createElement("keyhold-key-page");
 * keys.src = await fetchUrl(); // from the backend of the application
 * keys.addEventListener("keyhold-ended", () => showButton(async () => { keys.src = await fetchUrl(); }));
 * document.body.append(keys);
 */
export function defineKeyPage(name = "keyhold-key-page"): void {
  if (globalThis.customElements === undefined || customElements.get(name) !== undefined) return;
  // Unlike an element <style>, allowed by any Content-Security-Policy.
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(STYLE);
  class KeyPage extends HTMLElement implements KeyPageElement {
    static readonly observedAttributes = ["src", "label"];
    readonly #root = this.attachShadow({ mode: "open" });
    #connection: AbortController | undefined;
    #frame: HTMLIFrameElement | undefined;
    #origin = "";
    /** Whether the page of `src` was loaded: its link works once, and its cookie continues the session. */
    #wasLoaded = false;

    get src() {
      return this.getAttribute("src") ?? "";
    }
    set src(url) {
      this.setAttribute("src", url);
    }
    get label() {
      return this.getAttribute("label") ?? "API keys";
    }
    set label(text) {
      this.setAttribute("label", text);
    }

    connectedCallback() {
      this.#root.adoptedStyleSheets = [sheet];
      // Properties that were set before the element was defined hide the accessors.
      for (const property of ["src", "label"] as const) {
        const { [property]: value } = this;
        if (Reflect.deleteProperty(this, property) && value !== this[property]) this[property] = value;
      }
      this.#connection = new AbortController();
      window.addEventListener("message", (event) => this.#receive(event), { signal: this.#connection.signal });
      this.#load();
    }
    /** Keeps the frame as it is when `moveBefore` moves the element. */
    connectedMoveCallback() {}
    disconnectedCallback() {
      this.#connection?.abort();
      this.#connection = undefined;
      this.#frame?.remove();
    }
    attributeChangedCallback(attribute: string, old: string | null, value: string | null) {
      if (attribute === "label" && this.#frame !== undefined) this.#frame.title = this.label;
      if (attribute !== "src" || old === value) return;
      this.#wasLoaded = false;
      if (this.#connection !== undefined) this.#load();
    }

    /** Loads a new frame, because navigation of the old one would add to the history of the browser. */
    #load() {
      const height = this.#frame?.style.height ?? "";
      this.#frame?.remove();
      this.#frame = undefined;
      if (this.src === "") return;
      // The message does not contain the URL, which is a credential.
      const url = URL.canParse(this.src) ? new URL(this.src) : null;
      if (url === null || !/^https?:$/.test(url.protocol))
        throw new TypeError(`src of <${name}> must be an absolute http or https URL`);
      if (this.#wasLoaded) url.hash = "";
      const frame = document.createElement("iframe");
      Object.assign(frame, {
        title: this.label,
        referrerPolicy: "no-referrer",
        allow: `clipboard-write ${url.origin}`,
      });
      frame.style.height = height;
      frame.src = url.href;
      [this.#frame, this.#origin] = [frame, url.origin];
      this.#root.append(frame);
    }

    #receive({ source, origin, data }: MessageEvent) {
      const frame = this.#frame;
      if (frame === undefined || source !== frame.contentWindow || origin !== this.#origin) return;
      if (data?.type === "keyhold-key-page:height" && Number.isFinite(data.height)) {
        this.#wasLoaded = true;
        frame.style.height = `${Math.min(Math.max(Math.ceil(data.height), MIN_HEIGHT), MAX_HEIGHT)}px`;
      }
      if (data?.type === "keyhold-key-page:ended")
        this.dispatchEvent(new CustomEvent("keyhold-ended", { bubbles: true }));
    }
  }
  customElements.define(name, KeyPage);
}
