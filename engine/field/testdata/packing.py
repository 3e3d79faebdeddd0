#!/usr/bin/env python3
"""Writes packing.json, the known answers of the packing tests: python3 packing.py > packing.json

For every (b, M, N): the slots are derived from SHAKE256 of "lodge packing <b> <M> <N>" (decimal), as
D blocks of Size+16 little-endian bytes, each reduced mod p, where Size = ceil(bits of p / 8).
 xi       SHA-256 of xi as Size little-endian bytes
 coeffs   SHA-256 of the packed coefficients, Size little-endian bytes each
 first    the packed coefficient c_0, in hexadecimal
 digits   SHA-256 of the N balanced digits in order, 24 bytes of little-endian two's complement each
 extreme  SHA-256, likewise, of the digits of 0, 1, p-1, p-2, (p-1)/2, (p+1)/2 and then zeros
 centres  for the first eight columns j < min(8,D), by i then j: the upper 64 of 128 bits of the
          fraction of t_{iD+j}, where t = -digits/(X^D-b), computed exactly; only i < 4, in hexadecimal
Pure Python on integers, nothing shared with the Go code.
"""
import hashlib
import json
from fractions import Fraction

FIELDS = (
    [(13, 240, 8), (13, 248, 16)]
    + [(13, 2**16 - x, m) for x, m in ((256, 4), (196, 8), (22, 16), (72, 32), (28, 64), (190, 128), (288, 256))]
    + [(14, 2**32 - x, m) for x, m in ((5120, 2), (80, 4), (20, 8), (50, 16), (174, 32), (312, 64), (572, 128))]
    + [(14, 2**64 - x, m) for x, m in ((3072, 2), (64, 4), (428, 8), (8, 16), (22, 32), (56, 64))]
    + [(15, 2**128 - x, m) for x, m in ((40192, 2), (640, 4), (48, 8), (576, 16), (990, 32))]
)


def find_xi(p, b, m, n):
    h = 2
    while pow(h, (p - 1) // 2, p) != p - 1:
        h += 1
    w = pow(h, (p - 1) // (2 * n), p)
    assert pow(w, n, p) == p - 1
    (k,) = [k for k in range(1, 2 * m, 2) if pow(w, n // m * k, p) == b]
    return pow(w, k, p)


def dft(v, w, p):
    """sum_k v_k w^(jk), j = 0..len-1, for w of order len(v)."""
    if len(v) == 1:
        return v
    w2, half = w * w % p, len(v) // 2
    even, odd = dft(v[0::2], w2, p), dft(v[1::2], w2, p)
    out, z = [0] * len(v), 1
    for j in range(half):
        t = odd[j] * z % p
        out[j], out[j + half] = (even[j] + t) % p, (even[j] - t) % p
        z = z * w % p
    return out


def pack(slots, xi, p, m, n):
    d = n // m
    u, g, e = [0] * d, pow(5, m // 2, 2 * n), 1
    for s in slots:
        u[(e - 1) // (2 * m)] = s
        e = e * g % (2 * n)
    inv = pow(xi, -1, p)
    sums = dft(u, pow(inv, 2 * m, p), p)
    twist, out = pow(d, -1, p), []
    for s in sums:
        out.append(s * twist % p)
        twist = twist * inv % p
    return out


def balanced(c, b, m):
    """Digits of c in [0, p), as a list of m."""
    if c == b**m:
        return [-1] + [0] * (m - 1)
    out, carry = [], 0
    for _ in range(m):
        c, digit = divmod(c, b)
        digit += carry
        carry = 1 if digit > b // 2 else 0
        out.append(digit - b * carry)
    out[0] -= carry
    return out


def digits(coeffs, b, m):
    cols = [balanced(c, b, m) for c in coeffs]
    return [cols[j][i] for i in range(m) for j in range(len(coeffs))]


def digest(values, size):
    h = hashlib.sha256()
    for v in values:
        h.update((v % 256**size).to_bytes(size, "little"))
    return h.hexdigest()


def centres(e, b, m, d):
    """1/(X^D-b) = -(1/p) sum_i b^(M-1-i) X^(iD), so t = +(1/p) sum_i b^(M-1-i) X^(iD) e."""
    out, p = [], b**m + 1
    for i in range(min(m, 4)):
        for j in range(min(d, 8)):
            s = sum(b ** (m - 1 - a) * (e[(i - a) * d + j] if a <= i else -e[(i - a + m) * d + j]) for a in range(m))
            t = Fraction(s, p)
            out.append("%016x" % (((t - (t.numerator // t.denominator)) * 2**128).__floor__() >> 64))
    return out


def main():
    rows = []
    for logn, b, m in FIELDS:
        n, p = 2**logn, b**m + 1
        d, size = n // m, (p.bit_length() + 7) // 8
        xi = find_xi(p, b, m, n)
        assert pow(xi, d, p) == b
        stream = hashlib.shake_256(b"lodge packing %d %d %d" % (b, m, n)).digest(d * (size + 16))
        slots = [int.from_bytes(stream[i * (size + 16):(i + 1) * (size + 16)], "little") % p for i in range(d)]
        c = pack(slots, xi, p, m, n)
        g = pow(5, m // 2, 2 * n)
        for i in (0, 1, d - 1):  # the definition, at three slots
            x, acc = pow(xi, pow(g, i, 2 * n), p), 0
            for v in reversed(c):
                acc = (acc * x + v) % p
            assert acc == slots[i]
        e = digits(c, b, m)
        assert max(map(abs, e)) <= b // 2
        odd = [0, 1, p - 1, p - 2, (p - 1) // 2, (p + 1) // 2] + [0] * (d - 6)
        rows.append({
            "b": str(b), "M": m, "logN": logn,
            "xi": digest([xi], size), "coeffs": digest(c, size), "first": "%x" % c[0],
            "digits": digest(e, 24), "extreme": digest(digits(odd, b, m), 24),
            "centres": centres(e, b, m, d),
        })
    print(json.dumps(rows, indent=1))


main()
