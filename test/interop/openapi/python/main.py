"""A client that openapi-python-client made of docs/openapi.json, over REST, and prints TAP.

KEYHOLD_URL is the server, KEYHOLD_TOKEN an admin token.
"""

import os
import sys

from first_key import first_key
from keyhold import connect
from life import life_of_a_key
from others import errors, health_and_keys, later_releases
from tap import Report

client = connect()
report = Report()
report.topic("first key", lambda ok: first_key(os.environ["KEYHOLD_URL"], os.environ["KEYHOLD_TOKEN"], ok))
report.topic("life of a key", lambda ok: life_of_a_key(client, ok))
report.topic("errors", lambda ok: errors(client, ok))
report.topic("health and keys", lambda ok: health_and_keys(client, ok))
report.topic("later releases", lambda ok: later_releases(client, ok))
sys.exit(report.end())
