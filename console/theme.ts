import { type CSSVariablesResolver, createTheme, type MantineColorsTuple } from "@mantine/core";

/** Greens whose sixth shade, and lighter text on dark, have a contrast of at least 4.5 (WCAG 2.2, 1.4.3). */
const green: MantineColorsTuple = [
  ...(["#e9f7f3", "#d5ebe4", "#a9d7c9", "#7ac2ac", "#54b194"] as const),
  ...(["#3ca684", "#1c6e5b", "#175d4d", "#114e40", "#073f33"] as const),
];

export const theme = createTheme({
  primaryColor: "green",
  primaryShade: 7,
  colors: { green },
  fontFamily: "system-ui, sans-serif",
  fontFamilyMonospace: "ui-monospace, monospace",
  defaultRadius: "sm",
  respectReducedMotion: true,
  cursorType: "pointer",
  components: {
    // Else a table cuts its text off to give other columns more room.
    Badge: { defaultProps: { miw: "max-content" } },
    // Links are as large as the text around them.
    Anchor: { defaultProps: { inherit: true } },
    // Their lists are then within the landmarks of the page, and within dialogs.
    Select: { defaultProps: { comboboxProps: { withinPortal: false } } },
    TagsInput: { defaultProps: { comboboxProps: { withinPortal: false } } },
    Modal: {
      defaultProps: {
        // A dialog that fades out shows its next state meanwhile.
        transitionProps: { duration: 0 },
        // The page has one banner, and the heading of a dialog is no other (HTML AAM).
        attributes: { header: { role: "none" } },
      },
    },
  },
});

const RED = "#c92a2a";

/** Mantine's own grays for secondary text, its yellow on yellow and its red have a contrast below 4. */
export const cssVariables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-dimmed": "#495057",
    "--mantine-color-placeholder": "#6c757d",
    "--mantine-color-yellow-light-color": "#6b4a00",
    "--mantine-color-red-filled": RED,
    "--mantine-color-red-outline": RED,
    "--mantine-color-error": RED,
  },
  dark: {
    "--mantine-color-dimmed": "#a6a7ab",
    "--mantine-color-placeholder": "#9b9da2",
    "--mantine-color-red-filled": RED,
    "--mantine-color-error": "#ff8787",
  },
});
