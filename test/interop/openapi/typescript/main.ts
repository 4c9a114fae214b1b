import { firstKey } from "./first-key.ts";
import { importedKeys } from "./imported-keys.ts";
import { lifeOfAKey } from "./life-of-a-key.ts";
import { errors, healthAndKeys, laterReleases } from "./others.ts";
import { end, topic } from "./tap.ts";

/**
 * A client over REST by openapi-fetch, with types that openapi-typescript made of docs/openapi.json. It prints TAP. KEYHOLD_URL is
 * the server, KEYHOLD_TOKEN an admin token.
 */
const { KEYHOLD_URL = "", KEYHOLD_TOKEN = "" } = process.env;
await topic("first key", (ok) => firstKey(KEYHOLD_URL, KEYHOLD_TOKEN, ok));
await topic("life of a key", lifeOfAKey);
await topic("imported keys", importedKeys);
await topic("errors", errors);
await topic("health and keys", healthAndKeys);
await topic("later releases", laterReleases);
end();
