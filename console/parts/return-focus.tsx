import { useDidUpdate } from "@mantine/hooks";
import { type ReactNode, useLayoutEffect } from "react";

/**
 * Around a dialog that is in the document only while it is open: when it is gone, returns the focus to what had it before. If that is gone as
 * well, the page gets it, unless a heading has it after a navigation.
 */
export function ReturnFocus({ children }: { readonly children: ReactNode }) {
  useLayoutEffect(() => {
    const before = document.activeElement;
    return () => {
      // After the change of the document that removes the dialog.
      setTimeout(() => {
        if (before instanceof HTMLElement && before.isConnected) before.focus();
        else if (document.activeElement === document.body) document.getElementById("content")?.focus();
      });
    };
  }, []);
  return children;
}

/** Moves the focus to the page after a change of these buttons, if the one that had it is gone. */
export function useFocusFallback(buttons: string): void {
  useDidUpdate(() => {
    if (document.activeElement === document.body) document.getElementById("content")?.focus({ preventScroll: true });
  }, [buttons]);
}
