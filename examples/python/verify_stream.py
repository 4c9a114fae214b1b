"""Verifications over one stream of StreamVerify."""

import itertools
import threading
from concurrent.futures import Future
from queue import SimpleQueue

import grpc
from keyhold.v2alpha1.api_keys_pb2 import StreamVerifyRequest


class StreamError(Exception):
    """The stream has ended, as when the server stops: open another one."""


class VerificationFailed(Exception):
    """There is no verdict; `args` are the code and the message."""


class VerifyStream:
    """Threads may share it."""

    def __init__(self, keys, metadata):
        self._requests = SimpleQueue()
        self._waiting = {}
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._error = None
        answers = keys.StreamVerify(iter(self._requests.get, None), metadata=metadata)
        threading.Thread(target=self._receive, args=(answers,), daemon=True).start()

    def verify(self, request, timeout=10):
        """Returns what VerifyApiKey would return for the request."""
        future = Future()
        with self._lock:
            if self._error is not None:
                raise self._error
            id = next(self._ids)
            self._waiting[id] = future
        self._requests.put(StreamVerifyRequest(id=id, request=request))
        try:
            return future.result(timeout)
        finally:
            self._waiting.pop(id, None)

    def close(self):
        self._requests.put(None)

    def _receive(self, answers):
        error = StreamError("the stream has ended")
        try:
            for answer in answers:
                future = self._waiting.pop(answer.id, None)
                if future is None:
                    continue
                if answer.HasField("error"):
                    future.set_exception(VerificationFailed(answer.error.code, answer.error.message))
                else:
                    future.set_result(answer.response)
        except grpc.RpcError as reason:
            error.__cause__ = reason
        with self._lock:
            self._error = error
            for future in list(self._waiting.values()):
                future.set_exception(error)
