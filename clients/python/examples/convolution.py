"""A convolutional layer: the image of party 0, under the kernels of party 1. Run it once for each party:

python convolution.py 0 & python convolution.py 1 & python convolution.py 2
"""

import asyncio
import sys

import numpy as np

from lodge_mpc.online import Peer, Session

PEERS = [Peer(f"127.0.0.1:{7841 + i}", f"spiffe://lodge/client/p{i}") for i in range(3)]

IMAGE = np.zeros((1, 8, 8), dtype=int)  # of one channel: a digit 7
IMAGE[0, 1, 1:7] = 15
IMAGE[0, [2, 3, 4, 5, 6], [6, 5, 4, 4, 3]] = 15
KERNELS = np.array(
    [
        [[[1, 1, 1], [0, 0, 0], [-1, -1, -1]]],  # edges: horizontal, vertical, and the two diagonals
        [[[1, 0, -1], [1, 0, -1], [1, 0, -1]]],
        [[[0, 1, 1], [-1, 0, 1], [-1, -1, 0]]],
        [[[1, 1, 0], [1, 0, -1], [0, -1, -1]]],
    ]
)


async def main(own: int) -> None:
    async with Session(f"lodge-dev/clients/client-p{own}.yaml", PEERS) as mpc:
        image = mpc.input(IMAGE if own == 0 else None, owner=0, shape=IMAGE.shape)
        kernels = mpc.input(KERNELS if own == 1 else None, owner=1, shape=KERNELS.shape)
        features = await image.convolve(kernels).open()
    print("features:", features.shape, "strongest edge of each kernel:", features.max(axis=(1, 2)).tolist())


asyncio.run(main(int(sys.argv[1])))
