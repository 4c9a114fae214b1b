import { extname } from "node:path";
import { invalidArgument } from "../../domain/errors.ts";
import { isLoopbackHost } from "../../lib/host-names.ts";
import { type Get, list, oneOf, origin } from "./values.ts";

/** Returns the settings of the page for the owners of keys. */
export function toKeyPages(get: Get) {
  return {
    isOn: oneOf("KEYHOLD_KEY_PAGES", get("KEYHOLD_KEY_PAGES") ?? "on", ["on", "off"]) === "on",
    /** Origins whose pages may frame it. */
    frameAncestors: list(get("KEYHOLD_KEY_PAGES_FRAME_ANCESTORS")).map((text) =>
      origin(text, "KEYHOLD_KEY_PAGES_FRAME_ANCESTORS"),
    ),
    /** Empty: the name in the language of the reader. */
    name: get("KEYHOLD_KEY_PAGES_NAME") ?? "",
    logo: toLogo(get("KEYHOLD_KEY_PAGES_LOGO_FILE")),
    color: toColor(get("KEYHOLD_KEY_PAGES_COLOR")),
  };
}

/** Where browsers reach the console and the key page. They store the cookies only over TLS or on the loopback. */
export function publicOrigin(text: string, name: string): string {
  const url = URL.parse(text);
  const isOrigin = url !== null && text.replace(/\/$/, "") === url.origin;
  if (isOrigin && (url.protocol === "https:" || (url.protocol === "http:" && isLoopbackHost(url.host))))
    return url.origin;
  throw invalidArgument(
    name,
    "must be the https origin at which browsers reach the console, such as https://keyhold.example.com",
  );
}

const IMAGE_TYPES: Readonly<Record<string, string>> = {
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".webp": "image/webp",
  ".jpg": "image/jpeg",
};

function toLogo(file: string | undefined) {
  if (file === undefined) return null;
  const type = IMAGE_TYPES[extname(file).toLowerCase()];
  if (type !== undefined) return { file, type };
  throw invalidArgument("KEYHOLD_KEY_PAGES_LOGO_FILE", `must end with ${Object.keys(IMAGE_TYPES).join(", ")}`);
}

function toColor(text = ""): string {
  if (text === "" || /^#[\da-f]{6}$/i.test(text)) return text.toLowerCase();
  throw invalidArgument("KEYHOLD_KEY_PAGES_COLOR", "must have the form #rrggbb");
}
