import type { ReactNode, Ref } from "react";

interface Props {
  readonly label: string;
  readonly ref?: Ref<HTMLDivElement>;
  readonly children: ReactNode;
}

/** Lets what is wider than the page scroll within it, also by the keyboard. */
export function ScrollX({ label, ref, children }: Props) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would group controls
    // biome-ignore lint/a11y/noNoninteractiveTabindex: only what has the focus scrolls by the keyboard
    <div ref={ref} role="group" aria-label={label} tabIndex={0} className="scroll-x">
      {children}
    </div>
  );
}
