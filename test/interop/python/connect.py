import os
import ssl
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import grpc

from keyhold.v2alpha1 import (
    api_keys_pb2_grpc,
    derived_keys_pb2_grpc,
    imported_api_keys_pb2_grpc,
    issued_api_keys_pb2_grpc,
)

URL = os.environ["KEYHOLD_URL"]
CA_FILE = os.environ.get("KEYHOLD_CA_FILE")


class Bearer(grpc.UnaryUnaryClientInterceptor):
    """Sends a token with every call. (Call credentials of grpcio need TLS or a local channel.)"""

    def __init__(self, token):
        self.metadata = ("authorization", f"Bearer {token}")

    def intercept_unary_unary(self, continuation, details, request):
        metadata = [*(details.metadata or []), self.metadata]
        return continuation(details._replace(metadata=metadata), request)


@contextmanager
def connect():
    """Yields a stub for each service, with the admin token, or without one if none is needed."""
    with dial() as unauthenticated:
        admin = grpc.intercept_channel(unauthenticated, Bearer(os.environ["KEYHOLD_TOKEN"]))
        yield SimpleNamespace(
            issued=issued_api_keys_pb2_grpc.IssuedApiKeysServiceStub(admin),
            imported=imported_api_keys_pb2_grpc.ImportedApiKeysServiceStub(admin),
            keys=api_keys_pb2_grpc.ApiKeysServiceStub(admin),
            jwks=derived_keys_pb2_grpc.DerivedKeysServiceStub(unauthenticated),
            unauthenticated=api_keys_pb2_grpc.ApiKeysServiceStub(unauthenticated),
        )


def dial():
    address = urlsplit(URL)
    if address.scheme == "http":
        return grpc.insecure_channel(address.netloc)
    roots = Path(CA_FILE).read_bytes()
    return grpc.secure_channel(address.netloc, grpc.ssl_channel_credentials(roots))


def tls_context():
    """The trusted certificates for HTTP."""
    return ssl.create_default_context(cafile=CA_FILE) if CA_FILE else None
