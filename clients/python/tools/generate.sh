#!/usr/bin/env bash
# Generates the Python messages of the services that the client calls, from proto/ into DIR (default: the package), with the
# pinned compiler of .ci/requirements.txt. The modules live below lodge_mpc._proto, so that they take no other name.
set -euo pipefail
cd "$(dirname "$0")/../../.."
out=${1:-clients/python/lodge_mpc/_proto}
mkdir -p "$out"
bin/venv/bin/python -m grpc_tools.protoc --proto_path=proto --python_out="$out" --pyi_out="$out" \
	proto/lodge/{status/v1/status,job/v1/job,job/v1/session,tuples/v1/tuples,stock/v1/stock,threshold/v1/threshold,multikey/v1/keys,multikey/v1/registry,multikey/v1/evaluation,linear/v1/linear}.proto
find "$out" -name '*_pb2.py*' -exec sed -i -E 's/^from lodge\./from lodge_mpc._proto.lodge./' {} +
