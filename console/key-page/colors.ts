/** Red, green and blue, each from 0 to 255. */
type Rgb = readonly [number, number, number];

function parse(hex: string): Rgb {
  const value = Number.parseInt(hex.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

/** Returns a color between two: `share` of the second, from 0 to 1. */
export function mix(first: string, second: string, share: number): string {
  const [from, to] = [parse(first), parse(second)];
  const parts = from.map((part, index) => Math.round(part + ((to[index] ?? 0) - part) * share));
  return `#${parts.map((part) => part.toString(16).padStart(2, "0")).join("")}`;
}

/** Returns the relative luminance of a color (WCAG 2.2), from 0 to 1. */
export function luminance(hex: string): number {
  const [red = 0, green = 0, blue = 0] = parse(hex).map((part) => {
    const value = part / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Returns the contrast of two colors (WCAG 2.2), from 1 to 21. */
export function contrast(first: string, second: string): number {
  const [dark = 0, light = 0] = [luminance(first), luminance(second)].sort((a, b) => a - b);
  return (light + 0.05) / (dark + 0.05);
}

const STEPS = 50;

/** Returns the color closest to `hex`, on the line from it to `end`, that has at least this contrast to a background. */
export function readable(hex: string, end: "#000000" | "#ffffff", background: string, atLeast: number): string {
  const shades = Array.from({ length: STEPS }, (_, step) => mix(hex, end, step / STEPS));
  return shades.find((shade) => contrast(shade, background) >= atLeast) ?? end;
}
