/** Whether the page is in a frame of another page. */
export const isEmbedded = window.parent !== window;

/** The parent may be of any origin: what it receives is no secret. */
function post(message: { readonly type: string; readonly height?: number }): void {
  if (isEmbedded) window.parent.postMessage(message, "*");
}

/** Says that the page needs a new link: the session has ended, or there is none. */
export function reportEnded(): void {
  post({ type: "keyhold-key-page:ended" });
}

/** Reports the height of the document now and whenever it changes, so that the parent can make the frame as high. */
export function reportHeight(): void {
  if (!isEmbedded) return;
  const { documentElement } = document;
  documentElement.classList.add("embedded");
  const observer = new ResizeObserver(() => {
    const height = Math.ceil(documentElement.getBoundingClientRect().height);
    // Before anything is shown, the frame stays as it is.
    if (height > 0) post({ type: "keyhold-key-page:height", height });
  });
  observer.observe(documentElement);
  for (const type of ["focusin", "pointerdown"]) document.addEventListener(type, placeDialogs, { passive: true });
}

/** Pixels that a dialog needs below its top. */
const DIALOG_HEIGHT = 560;

/** Pixels of a dialog above the button that opens it. */
const ABOVE = 160;

/**
 * Places the next dialog beside what the person uses. The frame may be much higher than the window that shows a part of it, and the top of
 * the frame out of sight.
 */
function placeDialogs({ target }: Event): void {
  if (!(target instanceof Element) || target.closest("[role=dialog]") !== null) return;
  const { top } = target.getBoundingClientRect();
  const offset = Math.max(Math.min(top - ABOVE, window.innerHeight - DIALOG_HEIGHT), 16);
  document.documentElement.style.setProperty("--dialog-top", `${Math.round(offset)}px`);
}
