"""Measures lodge_mpc.online: LODGE_CLUSTER=lodge-dev python clients/python/tests/rates.py

Three processes on this machine compute over mutual TLS, with the certificates of the clients in LODGE_CLUSTER. A dealer
makes their tuples beforehand, so that the rates are those of the library, and not of Lodge. Times include the MAC
check and the opening of a sum of the results.
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import time
from collections.abc import Callable

import numpy as np
from test_arrays import Dealer, Dealing, config, identity, ports

from lodge_mpc.online import Peer, Session
from lodge_mpc.online.supply import SCALAR
from lodge_mpc.online.values import Shared
from lodge_mpc.reservation import Class

PARTIES = 3
MULTIPLICATIONS = 100_000
ROWS, INNER, COLUMNS = 1000, 1000, 100


def measured(what: str, dealer: Dealer, make: Callable[[Session], Shared], amount: str, count: int) -> None:
    """Runs a program in a process for each party, and prints the time of the first."""
    peers = [Peer(f"127.0.0.1:{port}", identity(i)) for i, port in enumerate(ports(PARTIES))]

    async def program(party: int) -> None:
        async with Dealing(dealer, config(party, PARTIES), peers, patience=600.0) as mpc:
            value = make(mpc)
            await mpc.open(mpc.public(0))  # all programs are ready
            began = time.monotonic()
            await value.sum().open()
            seconds = time.monotonic() - began
            if party == 0:
                sent = sum(link.sent for link in mpc._mesh.links.values()) / 1e6
                print(
                    f"{what}: {seconds:.2f} s, {count / seconds:.3g} {amount} a second, {sent:.1f} MB sent by a party"
                )

    children = []
    for party in range(PARTIES):
        if (child := os.fork()) == 0:
            try:
                asyncio.run(program(party))
                sys.stdout.flush()
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    states = [os.waitpid(child, 0)[1] for child in children]
    if any(states):
        sys.exit("a program failed")


def main() -> None:
    params = config(0, PARTIES).params
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}, numpy {np.__version__}")
    print(f"{PARTIES} parties, p128 of {params}, loopback", flush=True)

    def dealt(tuples: Class, count: int, checks: int) -> Dealer:
        dealer = Dealer(params, PARTIES)
        dealer.deal(SCALAR, 1, 0, 0)  # of the first check
        dealer.deal(tuples, count, 1 if tuples == SCALAR else 0, 0)
        for i in range(2):
            dealer.deal(SCALAR, 1, checks + i, 0)
        return dealer

    def numbers(dealer: Dealer, *shape: int) -> np.ndarray:
        return dealer.random(shape)

    dealer = dealt(SCALAR, MULTIPLICATIONS, 1 + MULTIPLICATIONS)
    x, y = numbers(dealer, MULTIPLICATIONS), numbers(dealer, MULTIPLICATIONS)
    measured("multiplications", dealer, lambda mpc: mpc.public(x) * mpc.public(y), "multiplications", MULTIPLICATIONS)
    dealer = dealt(Class("matrix", "", "", "", shape=(ROWS, INNER, COLUMNS)), 1, 1)
    a, b = numbers(dealer, ROWS, INNER), numbers(dealer, INNER, COLUMNS)
    measured(
        f"product of {ROWS} x {INNER} by {INNER} x {COLUMNS}",
        dealer,
        lambda mpc: mpc.public(a) @ mpc.public(b),
        "terms",
        ROWS * INNER * COLUMNS,
    )


if __name__ == "__main__":
    main()
