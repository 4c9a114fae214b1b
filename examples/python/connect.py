"""A connection to Keyhold, for all programs of this folder."""

import os
from urllib.parse import urlsplit

import grpc


def connect():
    """Returns a channel to KEYHOLD_URL."""
    address = urlsplit(os.environ["KEYHOLD_URL"])
    if address.scheme == "http":
        return grpc.insecure_channel(address.netloc)
    return grpc.secure_channel(address.netloc, grpc.ssl_channel_credentials())


# Each call sends the token, and ends after at most 10 seconds.
options = {"metadata": [("authorization", f"Bearer {os.environ['KEYHOLD_TOKEN']}")], "timeout": 10}
