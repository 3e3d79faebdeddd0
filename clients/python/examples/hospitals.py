"""The correlation of two hospitals' columns about the same patients. Run it once for each party:

python hospitals.py 0 & python hospitals.py 1 & python hospitals.py 2

The third party has no data, and computes with shares as the others do.
"""

import asyncio
import sys

import numpy as np

from lodge_mpc.online import Peer, Session

PEERS = [Peer(f"127.0.0.1:{7821 + i}", f"spiffe://lodge/client/p{i}") for i in range(3)]
PATIENTS = 200


def column(party: int) -> np.ndarray:
    """Doses at hospital 0, and blood pressures at hospital 1, as whole numbers."""
    doses = np.random.default_rng(1).integers(10, 60, PATIENTS)
    noise = np.random.default_rng(2).integers(-8, 9, PATIENTS)
    return doses if party == 0 else 150 - doses // 2 + noise


async def main(own: int) -> None:
    async with Session(f"lodge-dev/clients/client-p{own}.yaml", PEERS) as mpc:
        x, y = (mpc.input(column(i) if i == own else None, owner=i, shape=PATIENTS) for i in (0, 1))
        sums = await mpc.open(x.sum(), y.sum(), x @ y, x @ x, y @ y)
        sx, sy, xy, xx, yy = (int(v) for v in sums)
        n = PATIENTS
        correlation = (n * xy - sx * sy) / ((n * xx - sx**2) * (n * yy - sy**2)) ** 0.5
        print(f"dot product: {xy}, correlation: {correlation:.3f}")


asyncio.run(main(int(sys.argv[1])))
