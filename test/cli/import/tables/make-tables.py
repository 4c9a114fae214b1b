"""Writes the tables of this folder except better-auth.csv, with the code that each product uses, and the raw keys of each table.

python3 -m venv /tmp/tables && /tmp/tables/bin/pip install bcrypt==5.0.0 'django==4.2.30' djangorestframework-api-key==2.3.0 \
    djangorestframework==3.17.2
/tmp/tables/bin/python make-tables.py
"""

import base64
import csv
import hashlib
import json
import secrets
import string
from pathlib import Path

import bcrypt
import django
from django.conf import settings
from django.contrib.auth.hashers import make_password

settings.configure()
django.setup()

from rest_framework_api_key.crypto import concatenate  # noqa: E402  (needs the settings)

FOLDER = Path(__file__).parent
ALPHANUMERIC = string.ascii_letters + string.digits
BASE58 = "".join(c for c in ALPHANUMERIC if c not in "0OIl")


def random_text(alphabet: str, length: int) -> str:
    return "".join(secrets.choice(alphabet) for _ in range(length))


def write_csv(name: str, rows: list[dict[str, str]]) -> None:
    with open(FOLDER / f"{name}.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_keys(name: str, keys: list[str]) -> None:
    (FOLDER / f"{name}.keys").write_text("".join(f"{key}\n" for key in keys))


def unkey() -> None:
    """pkg/hash/sha256.go: base64.StdEncoding of the SHA-256 of the whole key."""
    keys = [f"acme_{random_text(BASE58, 22)}" for _ in range(8)]
    rows = [
        {
            "id": f"key_{random_text(BASE58, 16)}",
            "hash": base64.b64encode(hashlib.sha256(key.encode()).digest()).decode(),
            "start": key[:8],
            "name": f"unkey {index + 1}",
            "external_id": f"customer_{index % 7}",
            "permissions": "documents.read documents.write" if index % 2 else "",
        }
        for index, key in enumerate(keys)
    ]
    write_csv("unkey", rows)
    write_keys("unkey", keys)


def sha256() -> None:
    """A table of one's own: hexadecimal SHA-256 of a pepper and the key. The keys have a prefix that is part of them."""
    pepper = "not-a-secret-pepper:"
    keys = [f"acme_live_{secrets.token_urlsafe(24)}" for _ in range(8)]
    rows = [
        {
            "id": str(index + 1),
            "key_prefix": key[:16],
            "key_hash": hashlib.sha256((pepper + key).encode()).hexdigest(),
            "label": f"sha256 {index + 1}",
            "owner_id": f"customer_{index % 7}",
            "created_at": "2024-03-01 12:00:00+00",
        }
        for index, key in enumerate(keys)
    ]
    write_csv("sha256", rows)
    write_keys("sha256", keys)
    (FOLDER / "sha256.pepper").write_text(f"{pepper}\n")


def bcrypt_rows() -> None:
    """A table whose rows are found by the first characters of the key, and compared with bcrypt."""
    keys = [f"pk_{random_text(ALPHANUMERIC, 40)}" for _ in range(8)]
    rows = [
        {
            "lookup_prefix": key[:11],
            "phc": bcrypt.hashpw(key.encode(), bcrypt.gensalt(12 if index == 0 else 10)).decode(),
            "name": f"bcrypt {index + 1}",
            "actor_id": f"customer_{index % 3}",
        }
        for index, key in enumerate(keys)
    ]
    write_csv("bcrypt", rows)
    write_keys("bcrypt", keys)


def pbkdf2() -> None:
    """Django REST framework API Key: up to 2.3 Django's default hasher, from 3.0 on SHA-512, of prefix, dot and secret."""
    keys = [concatenate(random_text(ALPHANUMERIC, 8), random_text(ALPHANUMERIC, 32)) for _ in range(8)]
    rows = [
        {
            "id": key[:8],
            "prefix": key[:8],
            "hashed_key": make_password(key) if index % 2 else "sha512$$" + hashlib.sha512(key.encode()).hexdigest(),
            "created": "2024-03-01 12:00:00+00",
            "name": f"pbkdf2 {index + 1}",
            "revoked": "f",
            "expiry_date": "",
        }
        for index, key in enumerate(keys)
    ]
    write_csv("pbkdf2", rows)
    write_keys("pbkdf2", keys)


def auth0() -> None:
    """The names of Auth0's export of password hashes (NDJSON), for keys that consist of a public id and a secret."""
    lines, keys = [], []
    for index in range(6):
        client = random_text(ALPHANUMERIC, 16)
        key = f"{client}:{random_text(ALPHANUMERIC, 32)}"
        password_hash = bcrypt.hashpw(key.encode(), bcrypt.gensalt(10)).decode()
        keys.append(key)
        lines.append(
            {
                "_id": {"$oid": secrets.token_hex(12)},
                "client_id": client,
                "name": f"auth0 {index + 1}",
                "passwordHash": password_hash,
                "tenant": "example-tenant",
                "connection": "machines",
            }
        )
    (FOLDER / "auth0.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    write_keys("auth0", keys)


unkey()
sha256()
bcrypt_rows()
pbkdf2()
auth0()
