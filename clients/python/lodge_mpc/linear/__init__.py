"""Products of matrices and vectors, computed by a party that sees only ciphertexts, on numpy arrays.

    from lodge_mpc.linear import Fixed, LinearClient, Run
    with LinearClient.from_config("app.yaml") as client:
        c = client.multiply(a, b).entries             # two integer matrices of this client

    # A matrix times a vector shared by two clients, which call one party at about the same time:
    x = client.ask_vector(Run("other", name), share0, rows=len(m))   # the end with the key
    y = other.answer_vector(Run("app", name), m, share=share1)       # the end with the matrix
    product = unshare(x.entries, y.entries, x.t)                     # with both shares

**Security**: the party must follow the protocol. It learns the shapes and the bounds of the entries, and nothing from
the ciphertexts. A party that deviates makes results wrong without being detected. An answering end reveals its input to
the party, so the party must be its own. The asking end proves that its key and inputs are well formed, and learns its
share, up to a statistical distance that results state (``log_distance``). Distances add up over products of the same
two clients, and the party refuses products when their budget is used up ("burnt"). Every product uses a new key.
Parties refuse inputs that are not proved (``UNPROVED``), unless their operators have set allow_unproved_linear.
docs/guides/linear.md has details.

**Not constant time**: numpy's times may depend on values, and copies of secrets stay in memory until Python reuses it.
Where others can measure the machine closely, use the Go client or ``lodge linear``.
"""

from .calls import Progress
from .client import LinearClient, Product, ProductShares, Run
from .fixed import Fixed, RangeError, share, unshare
from .plans import METHODS, PACKINGS, plan_batch, plan_product, plan_vector
from .sets import DEFAULT_PRODUCT, DEFAULT_VECTOR, UNPROVED, LinearSet, lookup, sets

__all__ = [
    "DEFAULT_PRODUCT",
    "DEFAULT_VECTOR",
    "METHODS",
    "PACKINGS",
    "UNPROVED",
    "Fixed",
    "LinearClient",
    "LinearSet",
    "Product",
    "ProductShares",
    "Progress",
    "RangeError",
    "Run",
    "lookup",
    "plan_batch",
    "plan_product",
    "plan_vector",
    "sets",
    "share",
    "unshare",
]
