# Receives the events of the audit log, each once. Reads KEYHOLD_URL, KEYHOLD_TOKEN and RESUME_TOKEN_FILE.

import json
import os
import random
import sys
import time
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

# Without a token, the stream begins with the first event of the log.
URL = os.environ["KEYHOLD_URL"] + "/v2alpha1/admin/auditEvents:watch?start_seq=0"
saved_token = Path(os.environ.get("RESUME_TOKEN_FILE", "resume-token"))


def process(event):
    print(event["seq"], event["action"], event["key_id"], flush=True)


def receive():
    """Receives until the stream ends."""
    headers = {"Authorization": f"Bearer {os.environ['KEYHOLD_TOKEN']}"}
    if saved_token.exists():
        headers["Last-Event-ID"] = saved_token.read_text()
    # A heartbeat arrives every 15 s: after 30 s without one, the connection is lost.
    with urlopen(Request(URL, headers=headers), timeout=30) as lines:
        for line in lines:
            # The last line of a lost connection may be incomplete.
            if not line.startswith(b"data: ") or not line.endswith(b"\n"):
                continue
            response = json.loads(line.removeprefix(b"data: "))
            if "error" in response:
                return print(response["error"]["message"], file=sys.stderr)
            process(response["audit_event"])
            # Save this in your database, in the transaction that processes the event.
            saved_token.write_text(response["resume_token"])


while True:
    try:
        receive()
    except (OSError, HTTPException) as error:
        if isinstance(error, HTTPError) and error.code < 500 and error.code != 429:
            sys.exit(error.read().decode())
        print(error, file=sys.stderr)
    # At different times, so that not all receivers connect at once after the server has restarted.
    time.sleep(random.uniform(1, 3))
