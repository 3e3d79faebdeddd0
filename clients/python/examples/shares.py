from lodge_mpc import Client

with Client.from_config("lodge-dev/clients/client-p0.yaml") as client:
    reserved = client.reserve("scalar", field="p128", count=1000)
    t = client.fetch(reserved)

print(t)
print("party 0's shares of the first triple:", t.a[0], t.b[0], t.c[0])
print("the same as 64-bit limbs, without a copy:", t.raw("a").shape, t.raw("a").dtype)
