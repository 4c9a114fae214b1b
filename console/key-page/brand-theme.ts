import { type CSSVariablesResolver, type MantineThemeOverride, mergeThemeOverrides } from "@mantine/core";
import { cssVariables, theme } from "../theme.ts";
import { luminance, mix, readable } from "./colors.ts";

/** The contrast of text (WCAG 2.2, 1.4.3). */
const TEXT_CONTRAST = 4.5;

/** The least light background of text in light colors, and the lightest one in dark colors. */
const BACKGROUNDS = { light: "#e9ecef", dark: "#3b3b3b" } as const;

/** On a color with this luminance, black and white text have the same contrast, 4.58. */
const SAME_CONTRAST = 0.179;

interface Branded {
  readonly theme: MantineThemeOverride;
  readonly cssVariables: CSSVariablesResolver;
}

/**
 * Returns the theme with a color of a brand: as it is only behind text, which is black or white. Text, borders and outlines of the focus have the
 * shade of it that is readable. Null: the theme of the console.
 */
export function brandTheme(color: string | null): Branded {
  if (color === null) return { theme, cssVariables };
  // Away from the color of the text on it.
  const hover = mix(color, luminance(color) > SAME_CONTRAST ? "#ffffff" : "#000000", 0.12);
  const accents = accentsOf(color);
  return {
    theme: mergeThemeOverrides(theme, {
      primaryColor: "brand",
      autoContrast: true,
      luminanceThreshold: SAME_CONTRAST,
      colors: { brand: [color, color, color, color, color, color, color, color, hover, color] },
      // Without a color, they have that of outlines.
      components: { Button: { defaultProps: { color: "brand" } }, Checkbox: { defaultProps: { color: "brand" } } },
    }),
    cssVariables: (merged) => {
      const { variables, light, dark } = cssVariables(merged);
      return {
        variables,
        light: { ...light, ...variablesOf(accents.light) },
        dark: { ...dark, ...variablesOf(accents.dark) },
      };
    },
  };
}

/** Returns the shades of a color that are readable on the backgrounds of the page. */
export function accentsOf(color: string) {
  return {
    light: readable(color, "#000000", BACKGROUNDS.light, TEXT_CONTRAST),
    dark: readable(color, "#ffffff", BACKGROUNDS.dark, TEXT_CONTRAST),
  };
}

function variablesOf(accent: string) {
  return {
    "--mantine-color-anchor": accent,
    "--mantine-primary-color-filled": accent,
    "--mantine-color-brand-text": accent,
    "--mantine-color-brand-outline": accent,
    "--mantine-color-brand-light": "transparent",
    "--mantine-color-brand-light-color": accent,
  };
}
