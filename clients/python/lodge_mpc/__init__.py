"""Python client of Lodge: reserve authenticated tuples, and draw one party's shares of them as numpy arrays.

    from lodge_mpc import Client
    with Client.from_config("client.yaml") as client:
        reserved = client.reserve("scalar", field="p128", count=1000)
        t = client.fetch(reserved)              # t.a, t.b, t.c, t.mac_a, t.mac_b, t.mac_c
        key = client.mac_key_share(reserved)    # this party's share of the MAC key

Every party's program has its own client. One of them reserves and sends ``reserved.id`` to the others. All of them
fetch with it, and receive shares of the same tuples in the same order: the parties' shares of a value add up to it
modulo ``t.modulus``.
"""

from .client import Client
from .config import Config, Server
from .errors import BadAnswersError, BadKeysError, BadSharesError, ConfigError, LodgeError
from .reservation import KINDS, AwayParty, Convolution, Reservation, Stock, StockLevel
from .shares import Shares

__all__ = [
    "KINDS",
    "AwayParty",
    "BadAnswersError",
    "BadKeysError",
    "BadSharesError",
    "Client",
    "Config",
    "ConfigError",
    "Convolution",
    "LodgeError",
    "Reservation",
    "Server",
    "Shares",
    "Stock",
    "StockLevel",
]
