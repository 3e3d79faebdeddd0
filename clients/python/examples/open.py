from lodge_mpc import Client

clients = [Client.from_config(f"lodge-dev/clients/client-p{i}.yaml") for i in range(3)]
reserved = clients[0].reserve("scalar", field="p128", count=1000)
shares = [client.fetch(reserved.id) for client in clients]

p = shares[0].modulus
a, b, c, mac_a = (sum(s[name] for s in shares) % p for name in ("a", "b", "c", "mac_a"))
print("c = ab:", (c == a * b % p).all())

alpha = sum(client.mac_key_share(reserved, pool=True) for client in clients)
print("the MACs are right:", (mac_a == alpha * a % p).all())
