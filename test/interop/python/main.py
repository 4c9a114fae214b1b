"""A client of Keyhold over grpcio, which prints TAP.

KEYHOLD_URL is the server, KEYHOLD_TOKEN an admin token, KEYHOLD_CA_FILE (of an https URL) whom to trust, and
KEYHOLD_ROTATE_SIGNING_KEY a program that rotates the signing key of the server, whose algorithm is KEYHOLD_SIGNING_ALGORITHM.
"""

import sys

from connect import connect
from error_details import error_details
from introspection import introspection
from jwt_libraries import jwt_libraries
from jwt_offline import jwt_offline
from life import life_of_a_key
from macaroon_caveats import macaroon_caveats
from own_rules import own_rules
from tap import Report

with connect() as keyhold:
    report = Report()
    report.topic("life of a key", lambda ok: life_of_a_key(keyhold, ok))
    report.topic("errors", lambda ok: error_details(keyhold, ok))
    report.topic("JWT offline", lambda ok: jwt_offline(keyhold, ok))
    report.topic("JWT libraries", lambda ok: jwt_libraries(keyhold, ok))
    report.topic("introspection", lambda ok: introspection(keyhold, ok))
    report.topic("macaroon caveats", lambda ok: macaroon_caveats(keyhold, ok))
    report.topic("rules of a program beside those of Keyhold", own_rules)
    sys.exit(report.end())
