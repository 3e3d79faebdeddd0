"""The online phase of SPDZ: programs of n parties compute on shared arrays, with tuples from Lodge's stock.

    async with Session("client-p0.yaml", peers) as mpc:
        a = mpc.input(rows, owner=0)
        b = mpc.input(shape=(100, 10), owner=1)
        print(await (a @ b).open())

Every party runs the same program with its own configuration. A program that lies can stop the computation, but cannot
make ``open`` return a wrong value or learn anything except the opened values, as long as one program is honest and
its party's Lodge is, too. The secrets are Python's ints: computation is not in constant time, and copies stay in
memory.
"""

from .errors import CheckFailedError, InconsistentError, PeerError
from .peers import Peer
from .session import Session
from .values import Shared

__all__ = ["CheckFailedError", "InconsistentError", "Peer", "PeerError", "Session", "Shared"]
