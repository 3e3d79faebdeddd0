"""What an auction earns, when nobody shows a bid. Run it once for each party:

python auction.py 0 & python auction.py 1 & python auction.py 2
"""

import asyncio
import sys

from lodge_mpc.online import Peer, Session

PEERS = [Peer(f"127.0.0.1:{7811 + i}", f"spiffe://lodge/client/p{i}") for i in range(3)]
# For each of four lots: the pieces that a bidder takes, and its price for one. Each party knows only its own rows.
PIECES = [[3, 0, 10, 1], [0, 5, 2, 1], [7, 1, 0, 4]]
PRICES = [[120, 0, 95, 300], [0, 110, 90, 280], [125, 105, 0, 310]]


async def main(own: int) -> None:
    async with Session(f"lodge-dev/clients/client-p{own}.yaml", PEERS) as mpc:
        pieces = [mpc.input(PIECES[i] if i == own else None, owner=i, shape=4) for i in range(3)]
        prices = [mpc.input(PRICES[i] if i == own else None, owner=i, shape=4) for i in range(3)]
        sold = sum(pieces)
        earned = sum(p * q for p, q in zip(pieces, prices, strict=True)).sum()
        sold, earned = await mpc.open(sold, earned)
        print("pieces sold of each lot:", sold.tolist())
        print("the auction earns:", int(earned))


asyncio.run(main(int(sys.argv[1])))
