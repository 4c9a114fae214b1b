// A receiver of webhooks. Reads WEBHOOK_SECRET and PORT.

import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { Webhook } from "standardwebhooks";

const { WEBHOOK_SECRET = "", PORT = "3000" } = process.env;
const webhook = new Webhook(WEBHOOK_SECRET);

/** Keep these in your database, with a unique constraint, and add to them in the transaction that processes the message. */
const processed = new Set<string>();

createServer(async (request, response) => {
  // The signature is of the exact text, so it is verified before the text is parsed.
  const body = await text(request);
  try {
    webhook.verify(body, request.headers as Record<string, string>);
  } catch {
    response.writeHead(401).end();
    return;
  }
  const id = String(request.headers["webhook-id"]);
  if (processed.has(id)) {
    response.end("already processed");
    return;
  }
  processed.add(id);
  const { type, data } = JSON.parse(body);
  console.info(`${type} ${data.key_id}`);
  response.end("processed");
}).listen(Number(PORT));
