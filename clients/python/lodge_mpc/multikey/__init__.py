"""Bits under several parties' own keys: have parties encrypt, compute netlists and decrypt together.

    from lodge_mpc.multikey import MultikeyClient
    with MultikeyClient.from_config("app.yaml") as client:
        inputs = [client.encrypt(0, [1, 0, 1]), client.encrypt(1, [0, 1, 1])]  # by two parties, under their own keys
        result = client.evaluate(0, netlist, inputs)                           # by the first, which need not decrypt
        bits = client.decrypt(result.ciphertexts).bits                         # by both

A party that encrypts sees the bits, so use your own party. A result is only as trustworthy as the party that computed
it, and decryption is secure against parties that follow the protocol (docs/guides/multikey.md).
"""

from ..threshold.multikey import Batch, MultikeyCiphertext, MultikeySet
from .client import MultikeyClient
from .file import InputsFile, read_inputs, write_inputs
from .messages import Cost, Evaluation, OpenedBits, OwnKeys, PublishedKeys, Result, result_digest
from .netlist import Netlist, NetlistError

__all__ = [
    "Batch",
    "Cost",
    "Evaluation",
    "InputsFile",
    "MultikeyCiphertext",
    "MultikeyClient",
    "MultikeySet",
    "Netlist",
    "NetlistError",
    "OpenedBits",
    "OwnKeys",
    "PublishedKeys",
    "Result",
    "read_inputs",
    "result_digest",
    "write_inputs",
]
