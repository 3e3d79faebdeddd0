"""Reads dashboards into Grafana's own typed model and back, and reports the fields that were lost or changed."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import dashboard


def lost(there: Any, back: Any, path: str = "") -> Iterator[str]:
    """Yields the paths whose values differ after the round trip."""
    if isinstance(there, dict):
        for key, value in there.items():
            if not isinstance(back, dict) or key not in back:
                yield f"{path}/{key}"
            else:
                yield from lost(value, back[key], f"{path}/{key}")
    elif isinstance(there, list):
        if not isinstance(back, list) or len(back) != len(there):
            yield path
        else:
            for i, value in enumerate(there):
                yield from lost(value, back[i], f"{path}/{i}")
    elif there != back:
        yield path


def main(files: list[str]) -> int:
    register_default_plugins()
    status = 0
    for file in files:
        there = json.loads(Path(file).read_text(encoding="utf-8"))
        back = json.loads(JSONEncoder().encode(dashboard.Dashboard.from_json(there)))
        for path in lost(there, back):
            print(f"{file}: Grafana's model does not know {path}")
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
