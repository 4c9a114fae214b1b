// The backend of an application that embeds the key page. It has the token, and creates a session of the page for the user who is signed
// in. Reads KEYHOLD_URL, KEYHOLD_TOKEN and PORT.
import { createKeyholdClient, KeyPagePermission } from "@keyhold/client";
import express from "express";

const { KEYHOLD_URL: baseUrl = "http://127.0.0.1:4420", KEYHOLD_TOKEN: token, PORT = "3000" } = process.env;

const keyhold = createKeyholdClient({ baseUrl, token });
// In a real backend: the user of the session, whose cookie is SameSite.
const actorId = "user_42";

const app = express();
app.use(express.static(`${import.meta.dirname}/dist`));

// In a real backend, this route requires a session, and the rate of its calls is limited.
app.post("/key-page", async (request, response) => {
  // Another site must not open the page in the name of the user. Browsers set this header, and scripts cannot.
  if (request.get("sec-fetch-site") !== "same-origin") return void response.sendStatus(403);
  const { url } = await keyhold.keyPages.createKeyPageSession({
    actorId,
    permissions: [KeyPagePermission.CREATE, KeyPagePermission.ROTATE, KeyPagePermission.REVOKE],
    allowedScopes: ["read", "write"],
    maxTtl: "90d",
  });
  // The URL is a credential.
  response.set("cache-control", "no-store").json({ url });
});

app.listen(Number(PORT), "localhost");
