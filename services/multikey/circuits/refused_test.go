package circuits

import (
	"bytes"
	"io"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/lodge-mpc/lodge/engine/multikey/circuit"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Requests that cannot be computed are rejected at their submission, with the right code, and leave
// nothing reserved.
func TestRefused(t *testing.T) {
	w := newWorld(t, 2, nil)
	good := w.request(circuit.Adder(2), []int{0, 1}, 1, 2)
	form := func(f multikeyv1.InputForm) func(r *request) {
		return func(r *request) { r.header.Inputs[0].Form = f }
	}
	for name, x := range map[string]struct {
		change func(r *request)
		want   rpc.Code
	}{
		"no header":                {func(r *request) { r.header = nil }, rpc.Invalid},
		"a short request id":       {func(r *request) { r.header.RequestId = r.header.RequestId[1:] }, rpc.Invalid},
		"a short hash":             {func(r *request) { r.header.ParamsHash = nil }, rpc.Invalid},
		"another set":              {func(r *request) { r.header.ParamsHash[0] ^= 1 }, rpc.Foreign},
		"another reference string": {func(r *request) { r.header.CrsDigest[0] ^= 1 }, rpc.Foreign},
		"no netlist":               {func(r *request) { r.header.NetlistBytes = 0 }, rpc.TooLarge},
		"a huge netlist":           {func(r *request) { r.header.NetlistBytes = 1 << 60 }, rpc.TooLarge},
		"a netlist beyond memory":  {func(r *request) { r.header.NetlistBytes = circuit.MaxText }, rpc.TooLarge},
		"too many groups":          {func(r *request) { r.header.Inputs = make([]*multikeyv1.InputGroup, maxGroups+1) }, rpc.TooLarge},
		"no form":                  {form(0), rpc.Invalid},
		"an unknown form":          {form(9), rpc.Invalid},
		"invalid ciphertexts":      {form(multikeyv1.InputForm_INPUT_FORM_CIPHERTEXTS), rpc.Invalid},
		"an empty group":           {func(r *request) { r.header.Inputs[0].Count = 0 }, rpc.Invalid},
		"a huge group":             {func(r *request) { r.header.Inputs[0].Count = 1 << 31 }, rpc.Invalid},
		"a batch beyond memory":    {func(r *request) { r.header.Inputs[0].Count = 1 << 20 }, rpc.TooLarge},
		"a batch of two parties": {func(r *request) {
			r.header.Inputs[0].Keys = sorted(r.header.Inputs[0].Keys[0], r.header.Inputs[1].Keys[0])
		}, rpc.Invalid},
		"the same keys twice": {func(r *request) {
			r.header.Inputs[0].Keys = append(r.header.Inputs[0].Keys, r.header.Inputs[0].Keys[0])
		}, rpc.Invalid},
		"a short name":                 {func(r *request) { r.header.Inputs[0].Keys[0] = r.header.Inputs[0].Keys[0][1:] }, rpc.Invalid},
		"unknown keys":                 {func(r *request) { r.header.Inputs[0].Keys[0] = make([]byte, 32) }, rpc.UnknownKey},
		"keys other than the batch's":  {func(r *request) { r.header.Inputs[0].Keys = r.header.Inputs[1].GetKeys() }, rpc.BadCiphertext},
		"too few inputs":               {func(r *request) { r.header.Inputs, r.inputs = r.header.Inputs[:1], r.inputs[:len(r.inputs)/2] }, rpc.Invalid},
		"one byte missing":             {func(r *request) { r.inputs = r.inputs[1:] }, rpc.Invalid},
		"one extra byte":               {func(r *request) { r.inputs = append(r.inputs, 0) }, rpc.Invalid},
		"an invalid netlist":           {func(r *request) { r.text = bytes.Repeat([]byte{'x'}, len(r.text)) }, rpc.Invalid},
		"a batch of another set":       {func(r *request) { r.inputs[0] ^= 1 }, rpc.Foreign},
		"a batch of another size":      {func(r *request) { r.inputs[96] ^= 1 }, rpc.BadCiphertext},
		"the same id for another":      {func(r *request) { r.inputs[len(r.inputs)-1] ^= 1; r.header.RequestId = make([]byte, 16) }, rpc.Conflict},
		"more bootstraps than allowed": {func(r *request) { *r = *w.request(circuit.Adder(500), []int{0, 1}, 1, 1) }, rpc.PolicyRefused},
	} {
		if name == "the same id for another" {
			first := clone(good)
			first.header.RequestId = make([]byte, 16)
			if _, err := w.submit("c", first); err != nil {
				t.Fatal(err)
			}
		}
		r := clone(good)
		r.header.RequestId[0]++ // a different request
		x.change(r)
		if _, err := w.submit("c", r); code(err) != x.want {
			t.Errorf("%s: %v, want %s", name, err, x.want)
		}
	}
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	if want := w.s.jobs[0].in.bytes; w.s.memory != want {
		t.Errorf("%d bytes are reserved, but the waiting job needs %d", w.s.memory, want)
	}
}

// Requests whose results would not fit are rejected, and all requests if the roster pins no
// context.
func TestRefusedByLimits(t *testing.T) {
	w := newWorld(t, 2, func(l *config.MultikeyService) { l.MaxResults = 100 })
	if _, err := w.submit("c", w.request(circuit.Adder(2), []int{0, 1}, 1, 2)); code(err) != rpc.TooLarge {
		t.Errorf("a result above the limit: %v", err)
	}
	w = newWorld(t, 2, nil)
	first := w.request(circuit.Adder(2), []int{0, 1}, 1, 2)
	w.s.memory = int64(w.s.Limits.MaxMemory)
	if _, err := w.submit("c", first); code(err) != rpc.Busy {
		t.Errorf("while another job uses all memory: %v", err)
	}
	w.s.memory = 0
	// One client's reservations leave half of the memory to the others.
	share := int64(w.s.Limits.MaxMemory) / 2
	release, err := w.s.reserve("c", share)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.submit("c", first); code(err) != rpc.Busy {
		t.Errorf("while the client uses its whole share: %v", err)
	}
	if _, err := w.submit("d", first); err != nil {
		t.Errorf("while another client uses its share: %v", err)
	}
	if _, err := w.s.reserve("e", share+1); code(err) != rpc.TooLarge {
		t.Errorf("more than a client's share: %v", err)
	}
	release()
	if _, err := w.submit("c", first); err != nil {
		t.Errorf("after the release: %v", err)
	}
	w.s.Context = nil
	if _, err := w.estimate(first); code(err) != rpc.Invalid {
		t.Errorf("without a context: %v", err)
	}
	w.s.Run(t.Context())
}

func clone(r *request) *request {
	header, _ := proto.Clone(r.header).(*multikeyv1.EvaluationHeader)
	return &request{header, bytes.Clone(r.text), bytes.Clone(r.inputs)}
}

func sorted(a, b []byte) [][]byte {
	if bytes.Compare(a, b) > 0 {
		a, b = b, a
	}
	return [][]byte{a, b}
}

// Every request is either rejected with a code or can be computed.
func FuzzReceive(f *testing.F) {
	w := newWorld(f, 2, nil)
	good := w.request(circuit.Adder(2), []int{0, 1}, 1, 2)
	header, err := proto.Marshal(good.header)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(header, bytes.Join([][]byte{good.text, good.inputs}, nil), true)
	f.Add(header, good.text, false)
	f.Fuzz(func(t *testing.T, header, body []byte, compute bool) {
		h := new(multikeyv1.EvaluationHeader)
		if proto.Unmarshal(header, h) != nil {
			return
		}
		requests := []*multikeyv1.SubmitRequest{{Header: h}, {Chunk: body}}
		in, err := w.s.receive("c", func() (message, error) {
			if len(requests) == 0 {
				return nil, io.EOF
			}
			m := requests[0]
			requests = requests[1:]
			return m, nil
		}, compute)
		if err != nil {
			if got := code(refused(err)); got == rpc.Internal {
				t.Fatalf("an internal error: %v", err)
			}
			return
		}
		defer in.release()
		for i := range in.program.InputBits() {
			if compute && in.input(i) == nil {
				t.Fatal("an input is missing")
			}
		}
	})
}
