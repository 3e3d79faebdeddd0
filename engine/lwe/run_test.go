package lwe_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"testing"

	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/lwe"
)

// tasks are some of every kind, more than one group.
func (s *subject) tasks(t testing.TB) []lwe.Task {
	bit := func(i int) *lwe.LWE { return s.encrypt(t, uint64(i%2), lwe.Boolean, uint64(i)) }
	identity := s.identity(t)
	var list []lwe.Task
	for i := range 3 {
		for _, g := range []lwe.Gate{lwe.And, lwe.Mux, lwe.Xor, lwe.Look, lwe.Mux, lwe.Nor} {
			task := lwe.Task{Gate: g, Dst: s.NewLWE(), A: bit(i), B: bit(i + 1), C: bit(i / 2)}
			if g == lwe.Look {
				task.A, task.Table = s.encrypt(t, uint64(i), lwe.Padded), identity
			}
			list = append(list, task)
		}
	}
	return list
}

// Any number of workers gives the results of one task at a time, also if a result replaces an
// operand.
func TestRun(t *testing.T) {
	for _, name := range tiny {
		s := newSubject(t, name)
		var want []*lwe.LWE
		for _, task := range s.tasks(t) {
			out := s.NewLWE()
			var err error
			switch task.Gate {
			case lwe.Look:
				err = s.e.Lookup(out, task.A, task.Table)
			case lwe.Mux:
				err = s.e.Mux(out, task.A, task.B, task.C)
			default:
				err = s.e.Gate(out, task.Gate, task.A, task.B)
			}
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, out)
		}
		for in, workers := range []int{1, 2, 5, 2} {
			list := s.tasks(t)
			for i := range list {
				list[i].Dst = [4]*lwe.LWE{list[i].Dst, list[i].A, list[i].B, list[i].C}[in]
			}
			if err := s.e.Run(t.Context(), workers, list); err != nil {
				t.Fatal(err)
			}
			for i, task := range list {
				if !task.Dst.Equal(want[i]) {
					t.Errorf("%s: %d workers, in place of %d: task %d (%v) gives another ciphertext", name, workers, in, i, task.Gate)
				}
			}
		}
	}
}

func TestRunStops(t *testing.T) {
	s := newSubject(t, tiny[0])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	list := s.tasks(t)
	if err := s.e.Run(ctx, 2, list); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if !list[0].Dst.Equal(s.NewLWE()) {
		t.Error("a task started after the context had ended")
	}
	if err := s.e.Run(t.Context(), 2, nil); err != nil {
		t.Errorf("no tasks: %v", err)
	}
}

// A malformed task is named in the error, and no task is computed.
func TestTasksAreRefused(t *testing.T) {
	s, other := newSubject(t, tiny[0]), newSubject(t, tiny[1])
	good := s.encrypt(t, 1, lwe.Boolean)
	large := good.Clone()
	large.A[3] = s.Q
	short := &lwe.LWE{A: good.A[1:]}
	fromLarger := newScheme(t, lwe.Default).NewLWE()
	for name, c := range map[string]struct {
		task lwe.Task
		want error
	}{
		"no operand":              {lwe.Task{Gate: lwe.And, A: good}, lwe.ErrCiphertext},
		"no third operand":        {lwe.Task{Gate: lwe.Mux, A: good, B: good}, lwe.ErrCiphertext},
		"residue of q":            {lwe.Task{Gate: lwe.Or, A: good, B: large}, lwe.ErrCiphertext},
		"short operand":           {lwe.Task{Gate: lwe.Xor, A: short, B: good}, lwe.ErrCiphertext},
		"operand of another set":  {lwe.Task{Gate: lwe.Mux, A: good, B: good, C: fromLarger}, lwe.ErrCiphertext},
		"no table":                {lwe.Task{A: good}, lwe.ErrSet},
		"table of another set":    {lwe.Task{A: good, Table: other.identity(t)}, lwe.ErrSet},
		"malformed lookup":        {lwe.Task{A: large, Table: s.identity(t)}, lwe.ErrCiphertext},
		"no gate":                 {lwe.Task{Gate: 100, A: good, B: good}, lwe.ErrMessage},
		"gate that is not public": {lwe.Task{Gate: lwe.Mux + 1, A: good, B: good}, lwe.ErrMessage},
	} {
		first := s.NewLWE()
		c.task.Dst = s.NewLWE()
		list := []lwe.Task{{Gate: lwe.And, Dst: first, A: good, B: good}, c.task}
		if err := s.e.Run(t.Context(), 1, list); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if !first.Equal(s.NewLWE()) {
			t.Errorf("%s: the task before was computed", name)
		}
	}
	for _, dst := range []*lwe.LWE{nil, short} {
		if err := s.e.Gate(dst, lwe.And, good, good); !errors.Is(err, lwe.ErrCiphertext) {
			t.Errorf("no place for the result: %v", err)
		}
	}
}

// An evaluator does not know whose secret its keys and ciphertexts are under: with keys of another
// one, gates give noise and no error, which is why keys are received by their digest.
func TestKeysOfAnotherSecret(t *testing.T) {
	s := newSubject(t, tiny[0])
	keys := newKeys(t, tiny[0])
	if keys.Digest() == s.keys.Digest() {
		t.Fatal("the same keys")
	}
	stranger, err := lwe.NewEvaluator(s.Scheme, keys, 1)
	if err != nil {
		t.Fatal(err)
	}
	out, wrong := s.NewLWE(), 0
	for i := range uint64(64) {
		x := s.encrypt(t, i%2, lwe.Boolean, i)
		if err := stranger.Gate(out, lwe.And, x, x); err != nil {
			t.Fatal(err)
		}
		if s.secret.Decrypt(out, lwe.Boolean) != i%2 {
			wrong++
		}
	}
	if wrong < 10 {
		t.Errorf("%d of 64 results are wrong", wrong)
	}
}

// After its first call, an evaluator allocates nothing.
func TestAllocations(t *testing.T) {
	for _, name := range tiny {
		s := newSubject(t, name)
		x, out, identity := s.encrypt(t, 1, lwe.Boolean), s.NewLWE(), s.identity(t)
		allocs := testing.AllocsPerRun(10, func() {
			err := s.e.Gate(out, lwe.Nand, x, x)
			if err = errors.Join(err, s.e.Mux(out, x, x, x), s.e.Lookup(out, x, identity)); err != nil {
				t.Fatal(err)
			}
		})
		if allocs > 0 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}

// The same ciphertexts on every path of the kernels, and on every machine.
func TestResultsAreFixed(t *testing.T) {
	defer func(p kernel.Path) { _ = kernel.Select(p) }(kernel.Selected())
	for name, want := range map[string]string{
		tiny[0]:     "396bd9ebe5b002aea6222bdcbbf171e5c17ae02f30932c10d1a0c60f17c7e810",
		tiny[1]:     "ad968724ddaa24c5b2e430ff1e7c3cda8e7aa745e9222f94cfd151ceac1a0c1a",
		"L11-50":    "d379c549c12642df99795af3d59297598afbccc390f62815207971202b0add59",
		tiny[2]:     "a87c727c7b92b18f6f787a5f969d6718551c0ed1d2cd67a6fce17634b3eed3fb",
		lwe.Default: "d2e2ea53569ea7a52ef575ebbd8cd0012441bde92c920964f0bbaab2b915c372",
	} {
		var s *subject
		for p := kernel.Plain; p <= kernel.Best(); p++ {
			if err := kernel.Select(p); err != nil {
				t.Fatal(err)
			}
			if s == nil || s.Insecure { // making other keys takes long
				s = newSubject(t, name)
			}
			list := s.tasks(t)
			if !s.Insecure {
				list = list[:2]
			}
			if err := s.e.Run(t.Context(), 2, list); err != nil {
				t.Fatal(err)
			}
			digest := s.keys.Digest()
			h := sha256.New()
			h.Write(digest[:])
			for _, task := range list {
				h.Write(s.AppendLWE(nil, task.Dst))
			}
			if got := hex.EncodeToString(h.Sum(nil)); got != want {
				t.Errorf("%s on %v: %s, want %s", name, p, got, want)
			}
		}
	}
}
