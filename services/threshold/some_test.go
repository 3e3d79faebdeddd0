package threshold

import (
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
)

// The records of a request show exactly which messages were opened.
func TestSomeMessages(t *testing.T) {
	a, b, c := [32]byte{1}, [32]byte{2}, [32]byte{3}
	q := &request{batch: &lweCiphertexts{coefficients: 4}, intake: &intake{digests: [][32]byte{a, b, c}}}
	for _, x := range []struct {
		messages []int
		want     []ledger.Messages
	}{
		{nil, nil},
		{[]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, []ledger.Messages{{Ciphertext: a, Count: 4}, {Ciphertext: b, Count: 4}, {Ciphertext: c, Count: 4}}},
		{[]int{0, 2, 3, 7, 8, 11}, []ledger.Messages{
			{Ciphertext: a, Count: 1}, {Ciphertext: a, First: 2, Count: 2}, {Ciphertext: b, First: 3, Count: 1},
			{Ciphertext: c, Count: 1}, {Ciphertext: c, First: 3, Count: 1},
		}},
		{[]int{3, 4}, []ledger.Messages{{Ciphertext: a, First: 3, Count: 1}, {Ciphertext: b, Count: 1}}},
	} {
		if got := q.some(x.messages); !slices.Equal(got, x.want) {
			t.Errorf("%v: %+v", x.messages, got)
		}
	}
	if got := q.all(); len(got) != 3 || got[2] != (ledger.Messages{Ciphertext: c, Count: 4}) {
		t.Errorf("%+v", got)
	}
}
