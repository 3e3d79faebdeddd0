"""Change every byte of every file of a tree, or every STEP-th, one at a time, and count what the reader refuses.

Usage: everybyte.py DIRECTORY-OF-THE-READER TREE STEP. The output is two numbers: bytes changed, and changes not refused.
"""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import read_mpspdz  # noqa: E402

root = Path(sys.argv[2])


def good() -> bool:
    return all(r.ok for r in read_mpspdz.check([root])[1])


assert good(), "the tree is not good to begin with"
step = int(sys.argv[3])
changed = missed = 0
for path in sorted(p for p in root.rglob("*") if p.is_file()):
    data = path.read_bytes()
    for i in [*range(changed % step, len(data), step), len(data)]:
        # A bit of each byte in turn; after the last byte one more is added.
        broken = bytearray(data + b"\0"[: i == len(data)])
        if i < len(data):
            broken[i] ^= 1 << i % 8
        path.write_bytes(broken)
        changed += 1
        if good():
            missed += 1
            print(f"not refused: {path.name}, byte {i}", file=sys.stderr)
    path.write_bytes(data[:-1])
    changed += 1
    missed += good()
    path.write_bytes(data)
assert good(), "the tree was not restored"
print(changed, missed)
