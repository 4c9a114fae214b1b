"""Prints jwt-es256.json with another implementation, the `cryptography` package for Python, which signs deterministically (RFC 6979):
`python3 test/vectors/jwt-es256-make.py > test/vectors/jwt-es256.json`, then `biome format --write` on it.
The keys are those of RFC 7515 appendix A.3 (ES256) and RFC 8037 appendix A.1 (EdDSA)."""

import base64
import hashlib
import hmac
import json

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def from_base64url(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def jwk(public: dict[str, str], alg: str) -> dict[str, str]:
    """`public` has the required members in the order of RFC 7638 §3.3."""
    kid = base64url(hashlib.sha256(json.dumps(public, separators=(",", ":")).encode()).digest())
    return {**public, "kid": kid, "use": "sig", "alg": alg}


P256_KEY = ec.derive_private_key(
    int.from_bytes(from_base64url("jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI")), ec.SECP256R1()
)
ED25519_KEY = Ed25519PrivateKey.from_private_bytes(from_base64url("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"))
P256_NUMBERS = P256_KEY.public_key().public_numbers()
X, Y = (number.to_bytes(32) for number in (P256_NUMBERS.x, P256_NUMBERS.y))
P256_JWK = jwk({"crv": "P-256", "kty": "EC", "x": base64url(X), "y": base64url(Y)}, "ES256")
ED25519_X = base64url(ED25519_KEY.public_key().public_bytes_raw())
ED25519_JWK = jwk({"crv": "Ed25519", "kty": "OKP", "x": ED25519_X}, "EdDSA")

ISSUER = "https://keyhold.test"
ISSUED = 1_790_000_000
HEADER = {"alg": "ES256", "typ": "JWT", "kid": P256_JWK["kid"]}
ED25519_HEADER = {"alg": "EdDSA", "typ": "JWT", "kid": ED25519_JWK["kid"]}
CLAIMS = {
    "iss": ISSUER,
    "sub": "user_123",
    "jti": "0198b2a4-7d3e-7c52-a1f0-5c9a3b7e2d10",
    "iat": ISSUED,
    "exp": ISSUED + 3600,
    "scope": "read write",
    "key_id": "0198b2a4-0000-7c52-a1f0-5c9a3b7e2d10",
    "secret_version": 3,
}


def input_of(header: dict[str, str], claims: dict[str, object] = CLAIMS) -> str:
    return ".".join(base64url(json.dumps(part, separators=(",", ":")).encode()) for part in (header, claims))


def numbers(signing_input: str, algorithm: hashes.HashAlgorithm = hashes.SHA256()) -> tuple[int, int]:
    der = P256_KEY.sign(signing_input.encode(), ec.ECDSA(algorithm, deterministic_signing=True))
    return utils.decode_dss_signature(der)


def concatenated(r: int, s: int) -> bytes:
    return r.to_bytes(32) + s.to_bytes(32)


def token(header: dict[str, str] = HEADER, claims: dict[str, object] = CLAIMS) -> str:
    signing_input = input_of(header, claims)
    return f"{signing_input}.{base64url(concatenated(*numbers(signing_input)))}"


def with_signature(signature: bytes, header: dict[str, str] = HEADER) -> str:
    return f"{input_of(header)}.{base64url(signature)}"


def with_leading_zero(which: int) -> dict[str, object]:
    """Returns claims whose signature has a number below 2^248: a careless encoder makes it shorter than 32 bytes."""
    candidates = ({**CLAIMS, "sub": f"user_{count}"} for count in range(100_000))
    return next(claims for claims in candidates if numbers(input_of(HEADER, claims))[which] < 2**248)


def hs256(secret: bytes) -> str:
    signing_input = input_of({**HEADER, "alg": "HS256"})
    return f"{signing_input}.{base64url(hmac.new(secret, signing_input.encode(), hashlib.sha256).digest())}"


R, S = numbers(input_of(HEADER))
SIGNATURE = concatenated(R, S)
PEM = P256_KEY.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)
SMALL_R, SMALL_S = with_leading_zero(0), with_leading_zero(1)
ED25519_INPUT = input_of({**ED25519_HEADER, "alg": "ES256"})

VALID = [
    ("plain", token(), CLAIMS),
    ("r with a leading zero byte", token(claims=SMALL_R), SMALL_R),
    ("s with a leading zero byte", token(claims=SMALL_S), SMALL_S),
    ("the other s of the same signature", with_signature(concatenated(R, ORDER - S)), CLAIMS),
]

INVALID = {
    "DER instead of r and s": with_signature(utils.encode_dss_signature(R, S)),
    "DER of 64 bytes at most": with_signature(utils.encode_dss_signature(R, S)[:64]),
    "r is 0": with_signature(concatenated(0, S)),
    "s is 0": with_signature(concatenated(R, 0)),
    "both are 0": with_signature(bytes(64)),
    "r is the order": with_signature(concatenated(ORDER, S)),
    "s is the order": with_signature(concatenated(R, ORDER)),
    "all bits are set": with_signature(b"\xff" * 64),
    "r and s exchanged": with_signature(concatenated(S, R)),
    "a byte less": with_signature(SIGNATURE[:63]),
    "a byte more": with_signature(SIGNATURE + b"\0"),
    "no signature": with_signature(b""),
    "leading zero of r left out": with_signature(
        concatenated(*numbers(input_of(HEADER, SMALL_R)))[1:]
    ),
    "signature of another token": f"{input_of(HEADER)}.{token(claims={**CLAIMS, 'sub': 'admin'}).split('.')[2]}",
    "alg none, no signature": f"{input_of({**HEADER, 'alg': 'none'})}.",
    "alg none, good signature": token({**HEADER, "alg": "none"}),
    "alg es256": token({**HEADER, "alg": "es256"}),
    "alg ES384": token({**HEADER, "alg": "ES384"}),
    "alg ES256K": token({**HEADER, "alg": "ES256K"}),
    "alg EdDSA with the kid of the P-256 key": token({**HEADER, "alg": "EdDSA"}),
    "alg ES256 with the kid of the Ed25519 key, signed by the P-256 key": token(
        {**HEADER, "kid": ED25519_JWK["kid"]}
    ),
    "alg ES256 with the kid of the Ed25519 key, signed by it": (
        f"{ED25519_INPUT}.{base64url(ED25519_KEY.sign(ED25519_INPUT.encode()))}"
    ),
    "HS256 with the PEM of the public key": hs256(PEM),
    "HS256 with x of the public key": hs256(X),
    "HS256 with the point of the public key": hs256(b"\x04" + X + Y),
}

print(
    json.dumps(
        {
            "note": "Made by jwt-es256-make.py.",
            "issuer": ISSUER,
            "now": (ISSUED + 60) * 1000,
            "keys": [P256_JWK, ED25519_JWK],
            "valid": [{"name": name, "token": text, "actorId": claims["sub"]} for name, text, claims in VALID],
            "invalid": INVALID,
        }
    )
)
