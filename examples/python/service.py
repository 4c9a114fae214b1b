"""A web service that is protected by Keyhold. Reads KEYHOLD_URL and KEYHOLD_TOKEN, which needs only the scope keyhold:verify."""

from typing import Annotated

from fastapi import Depends, FastAPI

from keyhold.v2alpha1.api_keys_pb2 import VerifyApiKeyResponse
from middleware import require_scope

app = FastAPI()


@app.get("/books")
def books(caller: Annotated[VerifyApiKeyResponse, Depends(require_scope("read"))]):
    return {"reader": caller.actor_id}
