"""Logistic regression on patients of one party, with the weights of another. Run it once for each party:

python logistic.py 0 & python logistic.py 1 & python logistic.py 2

Party 0 has 64 patients of the breast cancer data that scikit-learn ships, and party 1 has trained a model on others.
Only the scores are opened. It needs scikit-learn: pip install scikit-learn
"""

import asyncio
import sys

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from lodge_mpc.online import Peer, Session

PEERS = [Peer(f"127.0.0.1:{7831 + i}", f"spiffe://lodge/client/p{i}") for i in range(3)]
PATIENTS = 64

data = load_breast_cancer()
scaler = StandardScaler().fit(data.data[PATIENTS:])
rows, benign = scaler.transform(data.data[:PATIENTS]), data.target[:PATIENTS]


def train() -> LogisticRegression:
    return LogisticRegression().fit(scaler.transform(data.data[PATIENTS:]), data.target[PATIENTS:])


async def main(own: int) -> None:
    model = train() if own == 1 else None
    weights = model.coef_.reshape(-1, 1) if model else None
    intercept = model.intercept_ if model else None
    async with Session(f"lodge-dev/clients/client-p{own}.yaml", PEERS) as mpc:
        x = mpc.input(rows if own == 0 else None, owner=0, shape=rows.shape, floats=True)
        w = mpc.input(weights, owner=1, shape=(rows.shape[1], 1), floats=True)
        b = mpc.input(intercept, owner=1, shape=1, floats=True)
        scores = (await (x @ w + b).open()).ravel()
    probability = 1 / (1 + np.exp(-scores))
    print("benign with probability:", np.round(probability[18:22], 2).tolist(), "for patients 18 to 21")
    if own == 0:  # who knows the diagnoses
        print(f"right for {((probability > 0.5) == benign).sum()} of {PATIENTS} patients")


asyncio.run(main(int(sys.argv[1])))
