"""Prints jwt-signing-key.json with another implementation, the `cryptography` package for Python:
`python3 test/vectors/jwt-signing-key-make.py > test/vectors/jwt-signing-key.json`.
EdDSA: key pair and thumbprint of RFC 8037 appendix A.1 to A.3, signature of A.4. ES256: key pair and signature of RFC 7515 appendix A.3."""

import base64
import hashlib
import json

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

WRAP_KEY = {"id": "0011223344556677", "secret": bytes(range(32))}
NONCE = bytes(range(100, 112))


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def from_base64url(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def vector(public: dict[str, str], alg: str, private_key: bytes, version: int, jws: str) -> dict[str, object]:
    """`public` has the required members of the JWK, in the order of RFC 7638 §3.3."""
    kid = base64url(hashlib.sha256(json.dumps(public, separators=(",", ":")).encode()).digest())
    additional_data = json.dumps(["keyhold signing key", version, WRAP_KEY["id"], kid], separators=(",", ":")).encode()
    encrypted = AESGCM(WRAP_KEY["secret"]).encrypt(NONCE, private_key, additional_data)
    return {
        "publicJwk": {**public, "kid": kid, "use": "sig", "alg": alg},
        "privateKey": private_key.hex(),
        "wrapped": (bytes([version]) + NONCE + encrypted).hex(),
        "jws": jws,
    }


def eddsa() -> dict[str, object]:
    seed = from_base64url("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A")
    private_key = Ed25519PrivateKey.from_private_bytes(seed)
    x = base64url(private_key.public_key().public_bytes_raw())
    signing_input = "eyJhbGciOiJFZERTQSJ9." + base64url(b"Example of Ed25519 signing")
    jws = signing_input + "." + base64url(private_key.sign(signing_input.encode()))
    return vector({"crv": "Ed25519", "kty": "OKP", "x": x}, "EdDSA", seed, 1, jws)


def es256() -> dict[str, object]:
    scalar = from_base64url("jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI")
    public_key = ec.derive_private_key(int.from_bytes(scalar), ec.SECP256R1()).public_key()
    numbers = public_key.public_numbers()
    x, y = (base64url(number.to_bytes(32)) for number in (numbers.x, numbers.y))
    signing_input = (
        "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
    )
    signature = "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
    r, s = (int.from_bytes(from_base64url(signature)[at : at + 32]) for at in (0, 32))
    public_key.verify(utils.encode_dss_signature(r, s), signing_input.encode(), ec.ECDSA(hashes.SHA256()))
    return vector({"crv": "P-256", "kty": "EC", "x": x, "y": y}, "ES256", scalar, 2, f"{signing_input}.{signature}")


print(
    json.dumps(
        {
            "note": "Made by jwt-signing-key-make.py. Byte strings are hexadecimal.",
            "wrapKey": {"id": WRAP_KEY["id"], "secret": WRAP_KEY["secret"].hex()},
            "nonce": NONCE.hex(),
            "EdDSA": eddsa(),
            "ES256": es256(),
        }
    )
)
