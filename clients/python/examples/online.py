"""The mean and the variance of three parties' numbers. No party sees another's. Run it once for each party:

python online.py 0 & python online.py 1 & python online.py 2
"""

import asyncio
import sys

from lodge_mpc.online import Peer, Session

PEERS = [Peer(f"127.0.0.1:{7801 + i}", f"spiffe://lodge/client/p{i}") for i in range(3)]
NUMBERS = [120, 250, 200]  # in a real computation each party knows only its own number


async def main(own: int) -> None:
    async with Session(f"lodge-dev/clients/client-p{own}.yaml", PEERS) as mpc:
        x = [mpc.input(NUMBERS[i] if i == own else 0, owner=i) for i in range(3)]
        total, squares = await mpc.open(sum(x), sum(v * v for v in x))
        mean = total / 3
        print(f"mean: {mean:.1f}, variance: {squares / 3 - mean**2:.2f}")


asyncio.run(main(int(sys.argv[1])))
