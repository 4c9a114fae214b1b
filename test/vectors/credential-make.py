"""Makes credential.json: a second implementation of server keys, issued secrets and digests, in plain Python.

    python3 test/vectors/credential-make.py > test/vectors/credential.json
"""

import hashlib
import hmac
import json
import uuid
import zlib

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
LABELS = ["secret-digest", "secret-tag", "page-token", "macaroon-root", "signing-key-wrap", "request-fingerprint", "hash-scheme-wrap", "webhook-secret-wrap", "console-session"]


def mac(key, data):
    return hmac.new(key, data, hashlib.sha256).digest()


def hkdf(secret, info, size):
    """RFC 5869 with SHA-256, without salt, for at most one block."""
    pseudorandom_key = mac(bytes(32), secret)
    return mac(pseudorandom_key, info.encode() + b"\x01")[:size]


def server_key(root, label):
    return hkdf(root, f"keyhold/v1/key/{label}", 32)


def base62(number, width):
    digits = ""
    for _ in range(width):
        number, digit = divmod(number, 62)
        digits = ALPHABET[digit] + digits
    assert number == 0
    return digits


def blocks(payload):
    return "".join(base62(int.from_bytes(payload[i : i + 8], "big"), 11) for i in range(0, len(payload), 8))


def with_checksum(text, excess=0):
    return text + base62(zlib.crc32(text.encode()) + excess, 6)


def payload(root, prefix, key_id, random):
    tagged = uuid.UUID(key_id).bytes + random
    return tagged + mac(server_key(root, "secret-tag"), prefix.encode() + b"\0" + tagged)[:16]


def issue(root, prefix, key_id, random):
    return with_checksum(f"{prefix}_v1_" + blocks(payload(root, prefix, key_id, random)))


ROOT = bytes(range(32))
OTHER_ROOT = b"another root secret of 36 characters"
KEY_ID = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10"
RANDOM = hashlib.sha256(b"random").digest()

derivations = [
    {
        "root": root.hex(),
        "label": label,
        "id": hkdf(root, f"keyhold/v1/id/{label}", 8).hex(),
        "secret": server_key(root, label).hex(),
    }
    for root, label in [*((ROOT, label) for label in LABELS), (OTHER_ROOT, LABELS[0])]
]

valid = []
for prefix, key_id, random in [
    ("kh", KEY_ID, RANDOM),
    ("k", KEY_ID, bytes(32)),
    ("abcdefghijklmn09", "0198b2a4-7d3e-7c52-a1f0-000000000000", b"\xff" * 32),
    ("v1", "00000000-0000-7000-8000-000000000001", RANDOM),
]:
    secret = issue(ROOT, prefix, key_id, random)
    valid.append(
        {
            "prefix": prefix,
            "key_id": key_id,
            "random": random.hex(),
            "secret": secret,
            "hint": f"{prefix}_v1_…{secret[-4:]}",
            "digest": mac(server_key(ROOT, "secret-digest"), secret.encode()).hex(),
        }
    )

good = valid[0]["secret"]
body = blocks(payload(ROOT, "kh", KEY_ID, RANDOM))
wrong_tag = payload(ROOT, "kh", KEY_ID, RANDOM)[:-1] + bytes([payload(ROOT, "kh", KEY_ID, RANDOM)[-1] ^ 1])
other_id = "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d11"
swapped = uuid.UUID(other_id).bytes + payload(ROOT, "kh", KEY_ID, RANDOM)[16:]

FORMAT, SIGNATURE = "INVALID_FORMAT", "SIGNATURE_INVALID"
invalid = [
    ("empty", "", FORMAT),
    ("the prefix only", "kh_v1_", FORMAT),
    ("one character too short", good[:-1], FORMAT),
    ("one character too long", good + "0", FORMAT),
    ("a line feed at the end", good + "\n", FORMAT),
    ("a space before", " " + good, FORMAT),
    ("wrong checksum", good[:-1] + ("0" if good[-1] != "0" else "1"), FORMAT),
    ("checksum plus 2^32", with_checksum(f"kh_v1_{body}", 1 << 32), FORMAT),
    ("two characters swapped", good[:20] + good[21] + good[20] + good[22:], FORMAT),
    ("in upper case", good.upper(), FORMAT),
    ("no prefix", with_checksum(f"_v1_{body}"), FORMAT),
    ("prefix of 17 characters", with_checksum(f"abcdefghijklmnopq_v1_{body}"), FORMAT),
    ("prefix that begins with a digit", with_checksum(f"1kh_v1_{body}"), FORMAT),
    ("prefix in upper case", with_checksum(f"KH_v1_{body}"), FORMAT),
    ("prefix with an underscore", with_checksum(f"kh_live_v1_{body}"), FORMAT),
    ("another version", with_checksum(f"kh_v2_{body}"), FORMAT),
    ("a block of 2^64", with_checksum("kh_v1_" + base62(1 << 64, 11) + body[11:]), FORMAT),
    ("the largest block", with_checksum("kh_v1_" + body[:-11] + "z" * 11), FORMAT),
    ("not a base62 digit", with_checksum(f"kh_v1_-{body[1:]}"), FORMAT),
    ("a full-width digit", with_checksum(f"kh_v1_０{body[1:]}"), FORMAT),
    ("a block too few", with_checksum(f"kh_v1_{body[11:]}"), FORMAT),
    ("a block too many", with_checksum(f"kh_v1_{body}{body[:11]}"), FORMAT),
    ("wrong tag", with_checksum("kh_v1_" + blocks(wrong_tag)), SIGNATURE),
    ("tag of zeros", with_checksum("kh_v1_" + blocks(payload(ROOT, "kh", KEY_ID, RANDOM)[:48] + bytes(16))), SIGNATURE),
    ("key id of another key", with_checksum("kh_v1_" + blocks(swapped)), SIGNATURE),
    ("prefix exchanged", with_checksum(f"ki_v1_{body}"), SIGNATURE),
    ("issued under another root", issue(OTHER_ROOT, "kh", KEY_ID, RANDOM), SIGNATURE),
    ("payload of zeros", with_checksum("kh_v1_" + blocks(bytes(64))), SIGNATURE),
]

vectors = {
    "made_by": "credential-make.py",
    "root": ROOT.hex(),
    "derivations": derivations,
    "valid": valid,
    "invalid": {
        kind: {why: text for why, text, reason in invalid if reason == kind} for kind in (FORMAT, SIGNATURE)
    },
}
print(json.dumps(vectors, ensure_ascii=False))
