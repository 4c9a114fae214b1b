import { setting } from "./page-settings.ts";

/** The name of who runs the service, for the owners of its keys. Empty: none is configured. */
export const brandName = setting("brand-name");

/** The path of the logo. Empty: there is none. */
export const brandLogo = setting("brand-logo");

/** The color of the brand, such as `#0a7bd3`; null: none is configured. */
export const brandColor = /^#[0-9a-f]{6}$/i.exec(setting("brand-color"))?.[0] ?? null;
