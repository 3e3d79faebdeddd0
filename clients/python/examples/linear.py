from concurrent.futures import ThreadPoolExecutor

import numpy as np

from lodge_mpc.linear import DEFAULT_VECTOR, Fixed, LinearClient, Run, lookup

CLIENTS = "lodge-dev/clients/"
matrix, vector = np.array([[0.5, -1.25, 2.0], [3.0, 0.0, -0.75]]), np.array([4.0, 1.5, -2.0])

with (
    LinearClient.from_config(CLIENTS + "app.yaml") as app,
    LinearClient.from_config(CLIENTS + "client-p0.yaml") as model,
):
    # Two matrices of this client, which the party sees only encrypted.
    squares = app.multiply([[1, -2], [3, 4]], [[1, -2], [3, 4]]).entries

    # A vector shared by two clients of one party, times a matrix of the second client.
    entries = Fixed.of(lookup(DEFAULT_VECTOR), bits=12, fraction=4)
    mine, theirs = entries.split(vector)
    run = Run.new("client-p0")  # whose name, and nothing else, the other end is told
    with ThreadPoolExecutor() as both:
        asked = both.submit(app.ask_vector, run, mine, rows=len(matrix))
        answered = model.answer_vector(Run("app", run.id), matrix, share=theirs, encoding=entries)
    product = entries.product(entries, terms=len(vector)).join(asked.result().entries, answered.entries)

print("squares:", squares.tolist())
print("product:", product.tolist())
