from lodge_mpc.multikey import MultikeyClient

NETLIST = """2 6
2 2 2
1 2

2 1 0 2 4 AND
2 1 1 3 5 AND
"""  # what two lists of yes and no have in common

with MultikeyClient.from_config("lodge-dev/clients/app.yaml") as client:
    # Two parties encrypt under their own keys; one of them computes, and both decrypt.
    inputs = [client.encrypt(0, [1, 1]), client.encrypt(1, [0, 1])]
    result = client.evaluate(0, NETLIST, inputs, progress=lambda job: print(job.state, job.done, "of", job.cost.gates))
    opened = client.decrypt(result.ciphertexts)

print("result", result.digest.hex())
print("bits:", opened.bits, "opened by parties", opened.quorums)
