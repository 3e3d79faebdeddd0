package threshold_test

import (
	"slices"
	"sync"
	"testing"

	client "github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
)

// However requests overlap, each party repeats its earlier answer for a message, and spends masks
// only for the other messages.
func TestOverlappingRepeats(t *testing.T) {
	w := newWorld(t, 3, nil)
	epoch := w.keys(1)
	w.masks(epoch, 60, "exact", 0, 1)
	w.masks(epoch, 60, "paper", 0, 1)
	k, public := w.key(epoch)
	values := [][]uint64{{1, 2, 3, 4, 5, 6, 7, 8}, {9, 10, 11, 12, 13, 14, 15, 0}, {3, 1, 4, 1, 5, 9, 2, 6}}
	var cs []*lwe.Ring
	for _, v := range values {
		cs = append(cs, w.encrypt(k, public, v...))
	}
	type message struct {
		paper                 bool
		ciphertext, k, member int
	}
	answered := map[message]decrypt.Part{}
	opened := map[bool]int{} // messages, by form
	for i, x := range []struct {
		each  int
		list  []int
		paper bool
	}{
		{each: 2, list: []int{0}},
		{each: 4, list: []int{0}},                 // more of the same ciphertext
		{each: 1, list: []int{0}},                 // fewer
		{each: 3, list: []int{1, 0}},              // with another ciphertext, at another index
		{each: 5, list: []int{0, 2, 1}},           // a part of each
		{each: 3, list: []int{1, 0}, paper: true}, // in the other form, which has separate answers
		{each: 5, list: []int{2, 0, 1}},           // all of the messages
		{each: 8, list: []int{2, 1, 0}},           // from three runs
		{each: 4, list: []int{0, 2}, paper: true},
	} {
		r := &client.Request{Coefficients: x.each, Quorum: []int{0, 1}, Paper: x.paper}
		var want []uint64
		for _, c := range x.list {
			r.Ring, want = append(r.Ring, cs[c]), append(want, values[c][:x.each]...)
		}
		out := w.opens(k, r, want)
		params, err := decrypt.ParamsOf(k.Scheme(), 1, x.paper)
		if err != nil {
			t.Fatal(err)
		}
		for member, b := range out.Answers.Parts {
			parts, err := decrypt.DecodeAnswer(params, len(want), b)
			if err != nil {
				t.Fatal(err)
			}
			for at, p := range parts {
				m := message{x.paper, x.list[at/x.each], at % x.each, member}
				was, before := answered[m]
				if before && was != p {
					t.Errorf("request %d: party %d answered differently before for message %d of ciphertext %d", i, member, m.k, m.ciphertext)
				}
				if answered[m] = p; !before && member == 0 {
					opened[x.paper]++
				}
			}
		}
		now, err := w.app.Key(t.Context(), epoch)
		if err != nil {
			t.Fatal(err)
		}
		free, total := uint64(0), uint64(opened[true]+opened[false])
		for _, m := range now.Masks {
			free += m.Free
		}
		if free != 120-total || now.Decrypted[0] != total || now.Decrypted[1] != total {
			t.Errorf("request %d: %d masks are left of 120, and %d messages were opened, of which the parties count %v", i, free, total, now.Decrypted)
		}
	}
}

// Requests of many LWE ciphertexts, whose memory is reused by later requests, are decrypted
// concurrently.
func TestManyCiphertexts(t *testing.T) {
	w := newWorld(t, 3, nil)
	epoch := w.keys(1)
	const count, requests = 300, 4
	w.masks(epoch, requests*count, "exact", 0, 1)
	k, public := w.key(epoch)
	group := sync.WaitGroup{}
	for r := range requests {
		values := make([]uint64, count)
		for i := range values {
			values[i] = uint64(i*(r+3)) % 16
		}
		made, err := client.Encrypt(k, public, values, lwe.Plain)
		if err != nil {
			t.Fatal(err)
		}
		q := &client.Request{Quorum: []int{0, 1}}
		for i := range values {
			c := k.Scheme().NewLWE()
			k.Scheme().Extract(c, made[i/k.Scheme().N()], i%k.Scheme().N())
			q.LWE = append(q.LWE, c)
		}
		ask := func() {
			if out, err := w.app.Decrypt(t.Context(), k, q); err != nil || !slices.Equal(out.Messages, values) {
				t.Errorf("request %d: %v", r, err)
			}
		}
		if r < requests/2 {
			ask()
		} else {
			group.Go(ask)
		}
	}
	group.Wait()
}
