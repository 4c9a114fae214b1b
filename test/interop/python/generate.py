"""Generates the stubs into a folder: python generate.py FOLDER"""

import sys
import sysconfig
from pathlib import Path

from grpc_tools import protoc

PROTO = Path(__file__).parents[3] / "proto"
# google/api comes with googleapis-common-protos, google/protobuf with grpcio-tools.
INCLUDED = [PROTO, sysconfig.get_path("purelib"), Path(protoc.__file__).parent / "_proto"]

sources = [path for path in sorted(PROTO.rglob("*.proto"))]
options = [f"--proto_path={path}" for path in INCLUDED]
output = [f"--python_out={sys.argv[1]}", f"--grpc_python_out={sys.argv[1]}"]
sys.exit(protoc.main(["protoc", *options, *output, *map(str, sources)]))
