#!/usr/bin/env python3
"""Writes expand.json: polynomials expanded from public seeds as the comment of Expand says, by other code.

Needs openssl on the path. Run it in this directory.
"""
import hashlib
import json
import subprocess


def field(b):
    return len(b).to_bytes(8, "little") + b


def words(tag, seed, label, index, count):
    data = b"".join(map(field, [tag, seed, label] + [i.to_bytes(8, "little") for i in index]))
    key = hashlib.shake_256(data).digest(32)
    command = ["openssl", "enc", "-aes-256-ctr", "-nopad", "-K", key.hex(), "-iv", "00" * 16]
    out = subprocess.run(command, input=bytes(8 * count), stdout=subprocess.PIPE, check=True).stdout
    return [int.from_bytes(out[8 * i : 8 * i + 8], "little") for i in range(count)]


def expand(primes, n, seed, label, index):
    rows = []
    for i, q in enumerate(primes):
        mask = (1 << (q - 1).bit_length()) - 1
        drawn = words(b"lodge common reference string", seed, label.encode(), index + [i], 4 * n + 256)
        rows.append([w & mask for w in drawn if w & mask < q][:n])
        assert len(rows[-1]) == n
    return rows


def main():
    cases = []
    for seed, label, index, primes, n in [
        (bytes(32), "", [], [97], 8),
        (bytes(range(32)), "a", [], [97, 562949953438721], 8),
        (bytes(range(32)), "a", [0], [97, 562949953438721], 8),
        (b"\xff" * 64, "relinearisation", [3, 2**64 - 1], [2, 3, 257, 2**50 - 27, 2**61 - 1, 2**63 + 29], 6),
        (b"a seed of the joint coin, 32 byte", "public key", [7], [562949953438721, 2**32 + 15], 4096),
    ]:
        rows = expand(primes, n, seed, label, index)
        flat = b"".join(v.to_bytes(8, "little") for row in rows for v in row)
        case = {"seed": seed.hex(), "label": label, "index": list(map(str, index)), "primes": list(map(str, primes)), "n": n}
        case["sha256"] = hashlib.sha256(flat).hexdigest()
        case["first"] = [str(row[0]) for row in rows]
        cases.append(case)
    stream = words(b"lodge stream", bytes(range(32)), b"name", [1, 2], 2048)
    digest = hashlib.sha256(b"".join(w.to_bytes(8, "little") for w in stream)).hexdigest()
    with open("expand.json", "w") as f:
        json.dump({"expand": cases, "stream": digest}, f, indent=1)
        f.write("\n")


main()
