"""Generates the stubs into a folder: python generate.py FOLDER"""

import sys
from pathlib import Path

from grpc_tools import protoc

OURS = Path(__file__).parents[3] / "proto"
# Protos of a program that has rules of its own.
THEIRS = Path(__file__).parent / "protos"
# google/protobuf comes with protoc.
INCLUDED = [OURS, THEIRS, Path(protoc.__file__).parent / "_proto"]

sources = [path for folder in (OURS, THEIRS) for path in sorted(folder.rglob("*.proto"))]
options = [f"--proto_path={path}" for path in INCLUDED]
output = [f"--python_out={sys.argv[1]}", f"--grpc_python_out={sys.argv[1]}"]
sys.exit(protoc.main(["protoc", *options, *output, *map(str, sources)]))
