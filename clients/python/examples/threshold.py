from lodge_mpc.threshold import ThresholdClient

with ThresholdClient.from_config("lodge-dev/clients/app.yaml") as client:
    key = client.key()
    public = client.public_key(key)

    # Two people encrypt; whoever has the ciphertexts adds them up, and any threshold + 1 of the holders open the sums.
    (first,), (second,) = public.encrypt([3, 1, 4]), public.encrypt([2, 7, 1])
    opened = client.decrypt(key, [first + second], coefficients=3)

print(f"epoch {key.epoch}, any {key.threshold + 1} of {len(key.holders)} parties decrypt")
print("sums:", opened.messages, "opened by parties", opened.quorum)
