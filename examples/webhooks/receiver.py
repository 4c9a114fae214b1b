# A receiver of webhooks. Reads WEBHOOK_SECRET and PORT.

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

webhook = Webhook(os.environ["WEBHOOK_SECRET"])

# Keep these in your database, with a unique constraint, and add to them in the transaction that processes the message.
processed = set()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        # The signature is of the exact bytes, so it is verified before they are parsed.
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            webhook.verify(body, dict(self.headers))
        except WebhookVerificationError:
            return self.answer(401, "")
        message_id = self.headers["webhook-id"]
        if message_id in processed:
            return self.answer(200, "already processed")
        processed.add(message_id)
        message = json.loads(body)
        print(message["type"], message["data"]["key_id"])
        self.answer(200, "processed")

    def answer(self, status, text):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "3000"))), Receiver).serve_forever()
