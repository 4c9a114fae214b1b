"""Writes macaroon-pymacaroons.json: macaroons that pymacaroons made, and ours (macaroon-ours.json) as it attenuates them.

    python3 -m venv venv && venv/bin/pip install pymacaroons==0.13.0
    venv/bin/python test/vectors/macaroon-make.py
    biome check --write test/vectors/macaroon-pymacaroons.json
"""

import json
import os
from base64 import urlsafe_b64encode

from pymacaroons import MACAROON_V2, Macaroon, Verifier
from pymacaroons.serializers.binary_serializer import BinarySerializer

HERE = os.path.dirname(os.path.abspath(__file__))
SERIALIZER = BinarySerializer()
THIRD_PARTY = ("https://auth.example.com", b"a shared key", "user = alice")


def b64(data):
    return urlsafe_b64encode(data).decode("ascii").rstrip("=")


def holds(macaroon, key):
    verifier = Verifier()
    verifier.satisfy_general(lambda condition: True)
    return verifier.verify(macaroon, key)


def make(name, key, identifier, location, conditions, third_party=None):
    # The library leaves the identifier out where the location is None; "" is an empty location field.
    macaroon = Macaroon(location=location, identifier=identifier, key=key, version=MACAROON_V2)
    for condition in conditions:
        macaroon.add_first_party_caveat(condition)
    assert holds(macaroon, key)
    if third_party:
        macaroon.add_third_party_caveat(*third_party)
    return {
        "name": name,
        "root_key": key.hex(),
        "identifier": b64(identifier),
        "location": location,
        "caveats": [caveat(c) for c in macaroon.caveats],
        "signature": macaroon.signature,
        "text": macaroon.serialize(serializer=SERIALIZER),
    }


def caveat(c):
    if c.first_party():
        return {"identifier": b64(c.caveat_id_bytes)}
    return {
        "identifier": b64(c.caveat_id_bytes),
        "verification_id": b64(c.verification_key_id),
        "location": c.location,
    }


def attenuate(ours, case):
    text = next(m["text"] for m in ours["minted"] if m["name"] == case["of"])
    macaroon = Macaroon.deserialize(text, serializer=SERIALIZER)
    assert macaroon.serialize(serializer=SERIALIZER) == text
    key = bytes.fromhex(ours["root_key"]["secret"])
    assert holds(macaroon, key)
    for condition in case["added"]:
        macaroon.add_first_party_caveat(condition)
    assert holds(macaroon, key)
    return macaroon.serialize(serializer=SERIALIZER)


def third_party_on(ours):
    macaroon = Macaroon.deserialize(ours["minted"][0]["text"], serializer=SERIALIZER)
    macaroon.add_third_party_caveat(*THIRD_PARTY)
    return macaroon.serialize(serializer=SERIALIZER)


def main():
    with open(os.path.join(HERE, "macaroon-ours.json"), encoding="utf-8") as file:
        ours = json.load(file)
    vectors = {
        "maker": "pymacaroons 0.13.0 (Python), by macaroon-make.py",
        "made": [
            make("bare", b"a key", b"an id", "", []),
            make("text", b"our super secret key", "our secret kéy".encode(), "http://mybank/", ["test = caveat", "größe = 1"]),
            make("long", bytes(range(32)), b"i" * 127, "l" * 128, ["c" * 300, "", "c"]),
            make("binary", bytes(range(224, 256)), bytes(range(256)), "", ["\0\x7f\ufeff😀"]),
            make("long key", b"k" * 100, b"id", "x", ["a", "b"]),
            make("third party", b"a key", b"an id", "http://mybank/", ["account = 1"], THIRD_PARTY),
        ],
        "attenuated": {case["name"]: attenuate(ours, case) for case in ours["attenuated"]},
        "third_party": third_party_on(ours),
    }
    with open(os.path.join(HERE, "macaroon-pymacaroons.json"), "w", encoding="utf-8") as file:
        json.dump(vectors, file, ensure_ascii=False)
        file.write("\n")


if __name__ == "__main__":
    main()
