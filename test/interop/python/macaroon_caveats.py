from datetime import datetime, timedelta, timezone

from pymacaroons import Macaroon

from keys import MACAROON, derive, issue, verdict_on, verify


def macaroon_caveats(keyhold, ok):
    """Narrows a derived macaroon offline with pymacaroons; the server then enforces the caveat."""
    derived = derive(keyhold, issue(keyhold).secret, MACAROON)
    read = Macaroon.deserialize(derived)
    ok("it is parsed", read.location == "keyhold" and read.serialize() == derived, read.inspect())

    narrow = verify(keyhold, narrowed(derived, "scope = read"))
    ok("a caveat removes a scope", narrow.is_valid and list(narrow.scopes) == ["read"], narrow)
    now = datetime.now(timezone.utc)
    for name, caveat, wanted in [
        ("a future time", f"time < {rfc3339(now + timedelta(minutes=1))}", "valid"),
        ("a past time", f"time < {rfc3339(now - timedelta(minutes=1))}", "EXPIRED"),
        ("an unknown caveat", "ip = 192.0.2.1", "SIGNATURE_INVALID"),
    ]:
        verdict = verdict_on(verify(keyhold, narrowed(derived, caveat)))
        ok(f"{name}: {wanted}", verdict == wanted, verdict)
    wide = verify(keyhold, narrowed(derived, "scope = read", "scope = read deploy admin"))
    ok("no caveat adds a scope", wide.is_valid and list(wide.scopes) == ["read"], wide)
    ok("the derived macaroon is unchanged", len(verify(keyhold, derived).scopes) == 2)


def narrowed(text, *caveats):
    macaroon = Macaroon.deserialize(text)
    for caveat in caveats:
        macaroon.add_first_party_caveat(caveat)
    return macaroon.serialize()


def rfc3339(time):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
