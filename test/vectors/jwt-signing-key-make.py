"""Prints jwt-signing-key.json with another implementation, the `cryptography` package for Python:
`python3 test/vectors/jwt-signing-key-make.py > test/vectors/jwt-signing-key.json`.
The key pair and its thumbprint are those of RFC 8037 appendix A.1 to A.3, the signature that of A.4."""

import base64
import hashlib
import json

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


seed = base64.urlsafe_b64decode("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=")
private_key = Ed25519PrivateKey.from_private_bytes(seed)
x = base64url(private_key.public_key().public_bytes_raw())
kid = base64url(hashlib.sha256(f'{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}'.encode()).digest())

wrap_key = {"id": "0011223344556677", "secret": bytes(range(32))}
nonce = bytes(range(100, 112))
additional_data = json.dumps(["keyhold signing key", 1, wrap_key["id"], kid], separators=(",", ":")).encode()
wrapped = b"\x01" + nonce + AESGCM(wrap_key["secret"]).encrypt(nonce, seed, additional_data)

signing_input = "eyJhbGciOiJFZERTQSJ9." + base64url(b"Example of Ed25519 signing")

print(
    json.dumps(
        {
            "note": "Made by jwt-signing-key-make.py. Byte strings are hexadecimal.",
            "publicJwk": {"kty": "OKP", "crv": "Ed25519", "x": x, "kid": kid, "use": "sig", "alg": "EdDSA"},
            "seed": seed.hex(),
            "wrapKey": {"id": wrap_key["id"], "secret": wrap_key["secret"].hex()},
            "nonce": nonce.hex(),
            "wrapped": wrapped.hex(),
            "jws": signing_input + "." + base64url(private_key.sign(signing_input.encode())),
        },
        indent=2,
    )
)
