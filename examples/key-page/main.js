// Embeds the key page of Keyhold. The page has no token: its backend (backend.ts) creates the session.
import { defineKeyPage } from "@keyhold/client/key-page";

defineKeyPage();

const keys = document.querySelector("keyhold-key-page");
const [button, error] = ["open", "error"].map((id) => document.getElementById(id));

// The session has ended. A button, because another session may end as soon: where the browser blocks the cookie, for example.
keys.addEventListener("keyhold-ended", () => {
  button.hidden = false;
});
button.addEventListener("click", open);
await open();

async function open() {
  button.hidden = true;
  error.textContent = "";
  try {
    const response = await fetch("key-page", { method: "POST" });
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    // The URL works once, within 10 minutes.
    keys.src = (await response.json()).url;
    keys.hidden = false;
  } catch (cause) {
    error.textContent = `The keys cannot be shown: ${cause.message}`;
    button.hidden = false;
  }
}
