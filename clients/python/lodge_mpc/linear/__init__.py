"""Matrices and vectors multiplied by a party that sees none of what is encrypted, with numpy arrays in and out.

    from lodge_mpc.linear import Fixed, LinearClient, Run
    with LinearClient.from_config("app.yaml") as client:
        c = client.multiply(a, b).entries             # two matrices of one's own, of integers

    # A matrix times a vector of which two clients have shares, both at one party, at about the same time:
    x = client.ask_vector(Run("other", name), share0, rows=len(m))   # one, which has the key
    y = other.answer_vector(Run("app", name), m, share=share1)       # the other, which has the matrix
    product = unshare(x.entries, y.entries, x.t)                     # whoever gets both shares

**Security**: the party follows the protocol. It learns the shapes and the bounds of the entries, and from the
ciphertexts nothing; a party that deviates makes results wrong, unnoticed. An end that answers shows its own input to
the party, which is therefore its own. The end that asks proves that its key and inputs are well formed, and learns its
share, but for a statistical distance that results tell (``log_distance``). Distances add up over products of the same
two clients, and the party refuses products when their budget is used up ("burnt"). A key is drawn for every product.
Parties refuse inputs that are not proved (``UNPROVED``), unless their operators have set allow_unproved_linear.
docs/linear.md says more.

**Not constant time**: numpy's times may depend on values, and copies of secrets stay in memory until Python uses it
again. Where others can measure the machine closely, use the Go client or ``lodge linear``.
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
