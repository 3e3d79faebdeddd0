"""A vote of three parties, each under its own key. Nobody sees a vote, only whether the majority says yes."""

from lodge_mpc.multikey import MultikeyClient

# Wires 0 to 2 are the votes. The last wire is the majority: (0 and 1) or (2 and (0 or 1)).
MAJORITY = """4 7
3 1 1 1
1 1

2 1 0 1 3 AND
2 1 0 1 4 OR
2 1 2 4 5 AND
2 1 3 5 6 OR
"""
VOTES = [True, False, True]

with MultikeyClient.from_config("lodge-dev/clients/app.yaml") as client:
    # Each party encrypts its own vote. One client does it here, which would know all of them.
    ballots = [client.encrypt(party, [vote]) for party, vote in enumerate(VOTES)]
    result = client.evaluate(0, MAJORITY, ballots)
    opened = client.decrypt(result.ciphertexts)  # only all three parties together can

print("accepted" if opened.bits[0] else "rejected", "by", len(VOTES), "parties", opened.quorums)
