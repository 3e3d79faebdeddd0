"""Threshold keys: download and verify them, encrypt, and have any threshold + 1 of their holders decrypt.

    from lodge_mpc.threshold import ThresholdClient
    with ThresholdClient.from_config("app.yaml") as client:
        key = client.key()
        ciphertexts = client.public_key(key).encrypt([3, 1, 4])
        opened = client.decrypt(key, ciphertexts, coefficients=3)   # opened.messages == [3, 1, 4]

Keys of BGV and BFV sets are used in the same way: ``bgv_public_key`` encrypts values in coefficients or slots, and
whole ciphertexts are decrypted with ``flooding=True`` where the parties allow it.

A client whose ciphertext is decrypted learns its message, and the result may depend on noise. So the parties' policies
decide which client may decrypt which ciphertexts. Results are correct if the parties of the quorum follow the protocol.
 Encryption is not constant time (see PublicKey). Answers are sealed to a recipient by ``decrypt_for``; opening
them needs ``pip install 'lodge-mpc[sealed]'`` (see Recipient).
"""

from .bgv import BGV_ENCODINGS, BGVCiphertext, BGVPublicKey, BGVSet
from .ciphertexts import ENCODINGS, LWECiphertext, PublicKey, RingCiphertext
from .client import Decryption, ThresholdClient
from .download import read_bgv_public_key, read_public_key
from .keys import Key, Keys, Masks
from .recipient import Recipient, SealedAnswers, read_recipient
from .request import Provenance, statement
from .sets import MASKS, ParameterSet

__all__ = [
    "BGV_ENCODINGS",
    "ENCODINGS",
    "MASKS",
    "BGVCiphertext",
    "BGVPublicKey",
    "BGVSet",
    "Decryption",
    "Key",
    "Keys",
    "LWECiphertext",
    "Masks",
    "ParameterSet",
    "Provenance",
    "PublicKey",
    "Recipient",
    "RingCiphertext",
    "SealedAnswers",
    "ThresholdClient",
    "read_bgv_public_key",
    "read_public_key",
    "read_recipient",
    "statement",
]
