import { expect, test } from "vitest";
import { accentsOf } from "../../console/key-page/brand-theme.ts";
import { contrast, luminance } from "../../console/key-page/colors.ts";

const PARTS = ["00", "33", "66", "80", "99", "cc", "ff"];

const COLORS = PARTS.flatMap((red) => PARTS.flatMap((green) => PARTS.map((blue) => `#${red}${green}${blue}`)));

test("the contrast is that of WCAG", () => {
  expect(contrast("#000000", "#ffffff")).toBeCloseTo(21);
  expect(contrast("#777777", "#ffffff")).toBeCloseTo(4.48, 2);
  expect(luminance("#ff0000")).toBeCloseTo(0.2126, 4);
});

test("text in the accent of any brand has a contrast of at least 4.5 in light and in dark colors", () => {
  const low = COLORS.filter((color) => {
    const { light, dark } = accentsOf(color);
    const onLight = ["#ffffff", "#f8f9fa", "#e9ecef"].map((background) => contrast(light, background));
    const onDark = ["#242424", "#2e2e2e", "#3b3b3b"].map((background) => contrast(dark, background));
    return Math.min(...onLight, ...onDark) < 4.5;
  });
  expect(low).toEqual([]);
});

test("an accent that is readable is the color of the brand itself", () => {
  expect(accentsOf("#1c3f94").light).toBe("#1c3f94");
  expect(accentsOf("#ffd54f").dark).toBe("#ffd54f");
});

test("black or white text on any color of a brand has a contrast of at least 4.5", () => {
  const low = COLORS.filter((color) => contrast(color, luminance(color) > 0.179 ? "#000000" : "#ffffff") < 4.5);
  expect(low).toEqual([]);
});
