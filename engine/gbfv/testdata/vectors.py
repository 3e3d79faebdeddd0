#!/usr/bin/env python3
"""Makes vectors.json: digests of evaluated ciphertexts, computed with big integers and no residue number system.

Inputs are polynomials of pseudorandom residues, so the vectors do not depend on samplers. Run from this directory:
python3 vectors.py > vectors.json (about four minutes). Only the parameter lists below are copied from the engine.
"""
import decimal
import hashlib
import json
import sys
from array import array

decimal.getcontext().prec = decimal.MAX_PREC
decimal.getcontext().Emax = decimal.MAX_EMAX
decimal.getcontext().traps[decimal.Inexact] = True
sys.set_int_max_str_digits(0)

q49 = [0x1ffffffd40001, 0x1ffffffc98001, 0x1ffffffbb8001, 0x1ffffffba0001, 0x1ffffffb58001, 0x1ffffffb40001,
       0x1ffffffb00001]
aux49 = [0x1fffffff68001, 0x1fffffff50001, 0x1ffffffee8001, 0x1ffffffea0001, 0x1ffffffe88001, 0x1ffffffe48001,
         0x1ffffffd58001]
q47 = [0x7fffffc18001, 0x7fffffbc0001, 0x7fffffbb8001, 0x7fffffb58001, 0x7fffffb28001, 0x7fffffae0001,
       0x7fffffab8001, 0x7fffff9c0001, 0x7fffff950001]
aux47 = [0x7ffffffc8001, 0x7ffffff00001, 0x7fffffe70001, 0x7fffffe48001, 0x7fffffe40001, 0x7fffffda0001,
         0x7fffffd08001, 0x7fffffc80001, 0x7fffffc48001]
q42 = [0x3ffffe8c001, 0x3ffffe80001, 0x3ffffe7c001, 0x3ffffe74001, 0x3ffffe28001]
aux42 = [0x3fffffa8001, 0x3fffff3c001, 0x3fffff0c001, 0x3ffffeec001, 0x3ffffedc001]
q43 = [0x6f6e3368001, 0x6f6e3328001, 0x6f6e32b0001, 0x6f6e3248001, 0x6f6e3218001]
aux43 = [0x6f6e3380001, 0x6f6e341c001, 0x6f6e3448001, 0x6f6e3454001, 0x6f6e3494001]
q55 = [0x7fffffff150001, 0x7ffffffef00001, 0x7ffffffecd0001, 0x7ffffffebb0001, 0x7ffffffeba0001, 0x7ffffffeac0001,
       0x7ffffffe9f0001, 0x7ffffffe700001, 0x7ffffffe600001, 0x7ffffffe4c0001, 0x7ffffffe310001, 0x7ffffffe220001,
       0x7ffffffe160001]
aux55 = [0x7fffffffe90001, 0x7fffffffbf0001, 0x7fffffffbd0001, 0x7fffffffba0001, 0x7fffffffaa0001, 0x7fffffffa50001,
         0x7fffffff9f0001, 0x7fffffff7e0001, 0x7fffffff770001, 0x7fffffff380001, 0x7fffffff330001, 0x7fffffff2d0001,
         0x7fffffff170001]

# name, log2 N, Q, Aux, primes per digit, field, b, M
SETS = [
    ("insecure-6", 6, q49, aux49, 2, "p128", 2**32 - 80, 4),
    ("insecure-8-64", 8, q47, aux47, 3, "p256", 2**64 - 64, 4),
    ("insecure-8-16", 8, q43, aux43, 1, "p256", 2**16 - 22, 16),
    ("S13-8", 13, q42, aux42, 1, "p128", 2**8 - 8, 16),
    ("S13-16", 13, q43, aux43, 1, "p128", 2**16 - 196, 8),
    ("S14-32", 14, q49, aux49, 2, "p128", 2**32 - 80, 4),
    ("S14-64", 14, q47, aux47, 3, "p128", 2**64 - 3072, 2),
    ("S15-128", 15, q55, aux55, 3, "p256", 2**128 - 40192, 2),
]


def product(primes):
    m = 1
    for p in primes:
        m *= p
    return m


def centre(x, m):
    x %= m
    return x - m if 2 * x > m else x


def nearest(x, m):  # m odd
    return (2 * x + m) // (2 * m)


def multiply(a, b):
    """Product in Z[X]/(X^N+1), by one multiplication of long decimal numbers."""
    n = len(a)
    size = max(map(abs, a)) * max(map(abs, b)) * n * 4 + 1
    w = len(str(size))

    def pack(v):
        def half(s):
            return decimal.Decimal("".join(str(max(s * x, 0)).zfill(w) for x in reversed(v)))
        return half(1) - half(-1)
    bias = 10**w // 2
    total = pack(a) * pack(b) + decimal.Decimal(str(bias).zfill(w) * (2 * n))
    s = str(total).zfill(w * 2 * n)
    c = [int(s[len(s) - (i + 1) * w:len(s) - i * w]) - bias for i in range(2 * n)]
    return [c[i] - c[i + n] for i in range(n)]


def add(*vs):
    return [sum(t) for t in zip(*vs)]


class Oracle:
    def __init__(self, name, logn, q, aux, width, field, b, m):
        self.name, self.n, self.q, self.aux, self.b = name, 1 << logn, q, aux, b
        self.Q, self.A = product(q), product(aux)
        self.d = self.n // m
        self.digits = [q[i:i + width] for i in range(0, len(q), width)]

    def crt(self, rows, primes):
        m = product(primes)
        parts = [m // p * pow(m // p, -1, p) for p in primes]
        return [sum(r * x for r, x in zip(col, parts)) % m for col in zip(*rows)]

    def uniform(self, label):
        """A polynomial over R_q: residue k modulo prime l is the k-th word of SHAKE256 of the label, reduced."""
        rows = []
        for l, p in enumerate(self.q):
            h = hashlib.shake_256(f"lodge gbfv vectors/{self.name}/{label}/{l}".encode()).digest(8 * self.n)
            rows.append([w % p for w in array("Q", h)])
        return self.crt(rows, self.q)

    def ciphertext(self, label):
        return self.uniform(label + ".c0"), self.uniform(label + ".c1")

    def key(self, label):
        return [(self.uniform(f"{label}.k0.{j}"), self.uniform(f"{label}.k1.{j}")) for j in range(len(self.digits))]

    def left(self, v):
        return [centre(nearest(self.A * x, self.Q), self.A) for x in v]

    def right(self, v):
        return [centre(x, self.Q) for x in v]

    def times_p(self, v):
        n, d = self.n, self.d
        return [(v[k - d] if k >= d else -v[k - d + n]) - self.b * v[k] for k in range(n)]

    def divide(self, v):
        return [x % self.Q for x in self.times_p([nearest(x, self.A) for x in v])]

    def switch(self, x, key):
        """x [.] key: digits are the residues modulo products of primes, centred."""
        u, v = [0] * self.n, [0] * self.n
        for primes, (k0, k1) in zip(self.digits, key):
            m = product(primes)
            digit = [centre(c, m) for c in x]
            u = add(u, multiply(digit, self.right(k0)))
            v = add(v, multiply(digit, self.right(k1)))
        return [c % self.Q for c in u], [c % self.Q for c in v]

    def galois(self, v, g):
        out = [0] * self.n
        for i, x in enumerate(v):
            j = i * g % (2 * self.n)
            out[j % self.n] = x if j < self.n else -x
        return out

    def hash(self, cts, primes=None):
        primes = primes or self.q
        h = hashlib.sha256(b"lodge gbfv ciphertexts" + len(cts).to_bytes(8, "little"))
        for ct in cts:
            for v in ct:
                h.update(len(primes).to_bytes(8, "little"))
                for p in primes:
                    h.update(self.n.to_bytes(8, "little"))
                    h.update(array("Q", [x % p for x in v]).tobytes())
        return h.hexdigest()

    def mul(self):
        a, b = self.ciphertext("a.0"), self.ciphertext("b.0")
        a, b = [self.left(v) for v in a], [self.right(v) for v in b]
        d0 = self.divide(multiply(a[0], b[0]))
        d1 = self.divide(add(multiply(a[0], b[1]), multiply(a[1], b[0])))
        d2 = self.divide(multiply(a[1], b[1]))
        u, v = self.switch(d2, self.relin)
        return add(d0, u), add(d1, v)

    def rotate(self):
        g = pow(5, self.n // 4, 2 * self.n)
        c0, c1 = self.ciphertext("a.0")
        u, v = self.switch(self.galois(c1, g), self.rotation)
        return add(self.galois(c0, g), u), v

    def matmul(self):
        """Algorithm 1 for d = 2, line by line."""
        g, d = pow(5, self.n // 4, 2 * self.n), 2
        a = [[self.left(v) for v in self.ciphertext(f"a.{k}")] for k in range(d)]
        b = [[self.right(v) for v in self.ciphertext(f"b.{k}")] for k in range(d)]
        out = []
        for i in range(d):
            terms = {}
            for x in range(2):
                for y in range(2):
                    total = [0] * self.n
                    for k in range(d):
                        v = b[(i - k) % d][y]
                        total = add(total, multiply(a[k][x], self.galois(v, g) if i == 1 else v))
                    terms[x, y] = self.divide(total)
            c0, c1, square = terms[0, 0], terms[1, 0], terms[1, 1]
            if i == 0:
                c1 = add(c1, terms[0, 1])
            else:
                u = self.switch(terms[0, 1], self.rotation)
                v = self.switch(terms[1, 1], self.rotation)
                c0, c1, square = add(c0, u[0]), add(c1, u[1], v[0]), v[1]
            w = self.switch(square, self.relin)
            out.append((add(c0, w[0]), add(c1, w[1])))
        return out

    def modulus_switch(self, k):
        m = product(self.q[:k])
        return [[nearest(m * x, self.Q) % m for x in v] for v in self.ciphertext("a.0")]

    def run(self):
        self.relin, self.rotation = self.key("relin"), self.key("rotation")
        k = min(3, len(self.q) - 1)
        return {
            "mul": self.hash([self.mul()]),
            "rotate": self.hash([self.rotate()]),
            "matmul": self.hash(self.matmul()),
            "switch": self.hash([self.modulus_switch(k)], self.q[:k]),
        }


vectors = []
for s in SETS:
    print(s[0], file=sys.stderr)
    vectors.append({"set": s[0], "field": s[5], **Oracle(*s).run()})
print(json.dumps(vectors, indent=1))
