import { defineKeyPage } from "@keyhold/client/key-page";

// The script of a page that embeds the key page, whose size docs/clients.md states.
defineKeyPage();
const keys = document.createElement("keyhold-key-page");
keys.src = location.hash.slice(1);
keys.addEventListener("keyhold-ended", () => keys.remove());
document.body.append(keys);
