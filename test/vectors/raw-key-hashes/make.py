"""Writes python.json and libxcrypt.json. README.md beside it says how it is run."""

import ctypes
import hashlib
import hmac
import json
import os
from base64 import b64encode, urlsafe_b64encode

import argon2
import bcrypt
import passlib
from argon2.low_level import Type, hash_secret
from passlib.hash import pbkdf2_sha1, pbkdf2_sha256, pbkdf2_sha512
from passlib.hash import scrypt as passlib_scrypt

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "keys.json")) as file:
    keys = json.load(file)
KEYS = keys["raw_keys"]
HMAC_KEYS = {name: bytes.fromhex(key) for name, key in keys["hmac_keys"].items()}
SALT = bytes(range(16))
AFFIXES = [("", ""), (" ", " "), ("pepper:", ""), ("", "–suffix"), ("before", "after")]

ENCODINGS = [
    ("HEX", lambda b: b.hex()),
    ("BASE64", lambda b: b64encode(b).decode()),
    ("BASE64URL", lambda b: urlsafe_b64encode(b).decode()),
    ("HEX", lambda b: b.hex().upper()),
    ("BASE64", lambda b: b64encode(b).decode().rstrip("=")),
    ("BASE64URL", lambda b: urlsafe_b64encode(b).decode().rstrip("=")),
]


def unpadded(data):
    return b64encode(data).decode().rstrip("=")


def affixes(prefix, suffix):
    return {**({"prefix": prefix} if prefix else {}), **({"suffix": suffix} if suffix else {})}


def fasts():
    names = [("SHA256", "sha256"), ("SHA384", "sha384"), ("SHA512", "sha512"), ("SHA512_256", "sha512_256")]
    hmacs = [("HMAC_SHA256", "sha256"), ("HMAC_SHA512", "sha512")]
    algorithms = [*((*name, None) for name in names), *((*name, key) for name in hmacs for key in HMAC_KEYS)]
    raw_keys = list(KEYS.items())
    # Each algorithm once. digest.test.ts computes the others with Node.
    for turn, (algorithm, name, hmac_key) in enumerate(algorithms):
        encoding, encode = ENCODINGS[turn % len(ENCODINGS)]
        prefix, suffix = AFFIXES[turn % len(AFFIXES)]
        key, raw_key = raw_keys[turn % len(raw_keys)]
        data = (prefix + raw_key + suffix).encode()
        digest = hmac.new(HMAC_KEYS[hmac_key], data, name).digest() if hmac_key else hashlib.new(name, data).digest()
        vector = {"algorithm": algorithm, "encoding": encoding, "value": encode(digest), "key": key}
        yield {**vector, **affixes(prefix, suffix), **({"hmac_key": hmac_key} if hmac_key else {})}


def slow(made_by, key, phc, prefix="", suffix="", matches=True):
    vector = {"made_by": made_by, "phc": phc, "key": key, **affixes(prefix, suffix)}
    return vector if matches else {**vector, "matches": False}


def texts(names):
    return [(name, KEYS[name]) for name in names]


SOME = ("ascii", "non-ascii", "long")

# bcrypt 5 of Python and others reject them.
TOO_LONG_FOR_BCRYPT = ("long", "73-bytes")


def bcrypts():
    salt = "OcfB8yDPkNxUtyGN/3u4Oe"
    for version, names in (("2a", ["ascii"]), ("2b", ["ascii", "one-byte", "72-bytes"]), ("2y", ["non-ascii"])):
        for key, text in texts(names):
            yield slow("bcrypt", key, bcrypt.hashpw(text.encode(), f"${version}$04${salt}".encode()).decode())
    for key in TOO_LONG_FOR_BCRYPT:
        truncated = bcrypt.hashpw(KEYS[key].encode(), f"$2b$04${salt}".encode()).decode()
        yield slow("bcrypt", key, truncated, matches=False)
    yield slow("bcrypt", "limit", bcrypt.hashpw(b"before limit", f"$2b$12${salt}".encode()).decode(), prefix="before ")


def argon2s():
    for kind in Type:
        for (key, text), (memory, passes, lanes, size) in zip(texts(SOME), [(1024, 1, 1, 16), (2048, 2, 4, 32), (1027, 3, 2, 64)]):
            yield slow("argon2-cffi", key, hash_secret(text.encode(), SALT, passes, memory, lanes, size, kind).decode())
    phc = hash_secret(b"limit after", SALT, 4, 65536, 4, 32, Type.ID).decode()
    yield slow("argon2-cffi", "limit", phc, suffix=" after")


def scrypts():
    passlib_hash = lambda text, rounds: passlib_scrypt.using(salt=SALT, rounds=rounds, block_size=8, parallelism=1).hash(text)
    for key, text in texts(SOME):
        yield slow("passlib", key, passlib_hash(text, 10))
        output = hashlib.scrypt(text.encode(), salt=SALT, n=2048, r=8, p=1, dklen=64)
        yield slow("hashlib", key, f"$scrypt$ln=11,r=8,p=1${unpadded(SALT)}${unpadded(output)}")
    yield slow("passlib", "limit", passlib_hash("limit", 15))


def pbkdf2s():
    # Its text has the digits in which the alphabets of base64 differ.
    salt = bytes([0xFB, 0xEF, 0xBE, 0xFF] * 4)
    for (key, text), scheme in zip(texts(SOME), (pbkdf2_sha1, pbkdf2_sha256, pbkdf2_sha512)):
        yield slow("passlib", key, scheme.using(salt=salt, rounds=1234).hash(text))
    sizes = [("sha1", 20), ("sha1", 32), ("sha256", 32), ("sha256", 64), ("sha512", 64), ("sha512", 32), ("sha512", 128)]
    for (key, text), (name, size) in zip(KEYS.items(), sizes):
        output = hashlib.pbkdf2_hmac(name, text.encode(), salt, 1000, size)
        yield slow("hashlib", key, f"$pbkdf2-{name}$i=1000${unpadded(salt)}${unpadded(output)}")
    output = hashlib.pbkdf2_hmac("sha256", b"limit", salt, 600000, 32)
    yield slow("hashlib", "limit", f"$pbkdf2-sha256$i=600000,l=32${unpadded(salt)}${unpadded(output)}")


def libxcrypt():
    library = ctypes.CDLL("libcrypt.so.1")
    library.crypt.restype = ctypes.c_char_p
    for version in (b"2a", b"2b", b"2y"):
        for key, text in texts(("ascii", "72-bytes")):
            setting = b"$" + version + b"$04$OcfB8yDPkNxUtyGN/3u4Oe"
            yield slow("libxcrypt", key, library.crypt(text.encode(), setting).decode())


def write(file, maker, fast_vectors, slow_vectors):
    with open(os.path.join(HERE, file), "w") as out:
        json.dump({"maker": maker, "fast": fast_vectors, "slow": slow_vectors}, out, ensure_ascii=False)


write(
    "python.json",
    f"hashlib and hmac (Python), bcrypt {bcrypt.__version__}, argon2-cffi {argon2.__version__}, passlib {passlib.__version__}, by make.py",
    list(fasts()),
    [*bcrypts(), *argon2s(), *scrypts(), *pbkdf2s()],
)
write("libxcrypt.json", "crypt of libxcrypt, by make.py", [], list(libxcrypt()))
