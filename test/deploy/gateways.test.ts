import { expect, test } from "vitest";
import { files, read } from "./files.ts";

const gateways = files.filter((file) => file.startsWith("deploy/gateways/"));

test("there are configurations for gateways", () => {
  expect(gateways.length).toBeGreaterThan(5);
});

test.each(gateways)("%s has at most 25 lines, and docs/gateways.md links it", (file) => {
  expect(read(file).trimEnd().split("\n").length).toBeLessThanOrEqual(25);
  expect(read("docs/gateways.md")).toContain(`(../${file})`);
});

test.each(gateways)("%s contains no token, and refers to the page", (file) => {
  expect(read(file)).not.toMatch(/kh_v1/);
  expect(read(file)).toMatch(/docs\/gateways\.md|haproxy\.cfg/);
});
