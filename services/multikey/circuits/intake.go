package circuits

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/multikey/circuit"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	service "github.com/lodge-mpc/lodge/services/multikey"
)

const (
	chunkSize   = 1 << 20
	uploadTime  = 10 * time.Minute
	maxGroups   = 512
	requestSize = 16
	// gateMemory is about the memory of a gate in bytes, from compiling a netlist until the gate is
	// computed.
	gateMemory = 200
	leastGate  = 6 // minimum bytes of a netlist per gate
)

// group is a run of consecutive inputs.
type group struct {
	count   int
	keys    []multikey.KeyID
	batch   *multikey.Batch
	encoded []byte // ciphertexts, of size bytes each
	size    int
}

// intake is a validated request of a client.
type intake struct {
	header  *multikeyv1.EvaluationHeader // with body, until the request is complete
	body    []byte
	scheme  *multikey.Scheme
	client  string
	request [requestSize]byte
	digest  [32]byte // of the whole request
	netlist [32]byte
	groups  []group
	program *circuit.Program
	cost    *circuit.Cost
	bytes   int64 // of memory
	release func()
}

// ids returns the identifiers of the inputs' keys without duplicates.
func (in *intake) ids() (list []multikey.KeyID) {
	known := map[multikey.KeyID]bool{}
	for _, g := range in.groups {
		for _, id := range g.keys {
			if !known[id] {
				known[id], list = true, append(list, id)
			}
		}
	}
	return list
}

// input returns a ciphertext of the validated inputs.
func (in *intake) input(i int) *multikey.Ciphertext {
	for _, g := range in.groups {
		if i -= g.count; i >= 0 {
			continue
		}
		i += g.count
		if g.batch != nil {
			return g.batch.Ciphertext(i)
		}
		c, err := in.scheme.DecodeCiphertext(g.encoded[i*g.size : (i+1)*g.size])
		if err != nil {
			panic("evaluation: a validated ciphertext cannot be decoded")
		}
		return c
	}
	panic("evaluation: an input that does not exist")
}

// describe returns the cost in its wire format.
func (in *intake) describe(rotation float64, workers int) *multikeyv1.EvaluationCost {
	c := &multikeyv1.EvaluationCost{
		Gates: uint64(in.cost.Gates), Levels: uint32(in.cost.Depth), Bootstraps: uint64(in.cost.Total()), Rotations: uint64(in.cost.Rotations()),
		MemoryBytes: uint64(in.bytes), ResultBytes: uint64(in.cost.Output), RotationSeconds: rotation,
	}
	for _, n := range in.cost.Bootstraps[1:] {
		c.BootstrapsOfParties = append(c.BootstrapsOfParties, uint64(n))
	}
	for n := len(c.BootstrapsOfParties); n > 0 && c.BootstrapsOfParties[n-1] == 0; n-- {
		c.BootstrapsOfParties = c.BootstrapsOfParties[:n-1]
	}
	c.Seconds = rotation * float64(c.Rotations) / in.width(workers)
	return c
}

// width returns the average number of concurrent rotations, over the gates of a level and the
// parties of a gate.
func (in *intake) width(workers int) float64 {
	if in.cost.Depth == 0 {
		return 1
	}
	return max(1, min(float64(workers), float64(in.cost.Rotations())/float64(in.cost.Depth)))
}

// message is a header or a chunk of a request.
type message interface {
	GetHeader() *multikeyv1.EvaluationHeader
	GetChunk() []byte
}

// receive reads and validates a request. If compute is true, the inputs follow the netlist.
func (s *Service) receive(client string, recv func() (message, error), compute bool) (*intake, error) {
	if s.Context == nil {
		return nil, service.NotConfigured()
	}
	in, err := rpc.Receive(uploadTime, recv, func(m message) (*intake, error) {
		if m.GetHeader() == nil || len(m.GetChunk()) > 0 {
			return nil, rpc.Errorf(rpc.Invalid, "send the header first, in its own message", "no header")
		}
		return s.begin(client, m.GetHeader(), compute)
	}, (*intake).add)
	if err == nil && len(in.body) != cap(in.body) {
		err = rpc.Errorf(rpc.Invalid, "", "received %d bytes, but the header announces %d", len(in.body), cap(in.body))
	}
	if err == nil {
		err = s.check(in, compute)
	}
	if err != nil {
		if in != nil {
			in.release()
		}
		return nil, err
	}
	in.header, in.body = nil, nil
	return in, nil
}

// add appends the chunk of a message to the body.
func (in *intake) add(m message) error {
	switch n := len(m.GetChunk()); {
	case m.GetHeader() != nil && m.GetHeader() != in.header:
		return rpc.Errorf(rpc.Invalid, "", "a second header")
	case n > chunkSize:
		return rpc.Errorf(rpc.TooLarge, "", "a chunk of %d bytes; at most %d", n, chunkSize)
	case len(in.body)+n > cap(in.body):
		return rpc.Errorf(rpc.Invalid, "", "more than the %d bytes that the header announces", cap(in.body))
	}
	in.body = append(in.body, m.GetChunk()...)
	return nil
}

// begin validates a header. The body has the capacity for the following data.
func (s *Service) begin(client string, h *multikeyv1.EvaluationHeader, compute bool) (*intake, error) {
	scheme := s.Context.Scheme
	switch {
	case len(h.GetRequestId()) != requestSize:
		return nil, rpc.Errorf(rpc.Invalid, "", "a request id of %d bytes, not %d", len(h.GetRequestId()), requestSize)
	case len(h.GetParamsHash()) != 32 || len(h.GetCrsDigest()) != 32:
		return nil, rpc.Errorf(rpc.Invalid, "", "a digest that does not have 32 bytes")
	case h.GetNetlistBytes() == 0 || h.GetNetlistBytes() > circuit.MaxText:
		return nil, rpc.Errorf(rpc.TooLarge, "split the netlist", "a netlist of %d bytes (supported: 1 to %d)", h.GetNetlistBytes(), circuit.MaxText)
	case len(h.GetInputs()) > maxGroups:
		return nil, rpc.Errorf(rpc.TooLarge, "encrypt more bits in a batch", "%d groups of inputs; at most %d", len(h.GetInputs()), maxGroups)
	}
	if err := s.Context.Same([32]byte(h.GetParamsHash()), [32]byte(h.GetCrsDigest())); err != nil {
		return nil, rpc.Errorf(rpc.Foreign, "compare `lodge mk registry list` of the parties", "%v", err)
	}
	in := &intake{header: h, scheme: scheme, client: client, request: [requestSize]byte(h.GetRequestId())}
	size, bits := int(h.GetNetlistBytes()), 0
	in.bytes = 2*int64(size) + int64(min(size/leastGate, circuit.MaxWires))*gateMemory
	for i, g := range h.GetInputs() {
		x, bytes, err := s.group(g)
		if err != nil {
			return nil, fmt.Errorf("group %d: %w", i, err)
		}
		if bits += x.count; bits > circuit.MaxWires {
			return nil, rpc.Errorf(rpc.TooLarge, "", "more than %d bits", circuit.MaxWires)
		}
		in.groups = append(in.groups, x)
		in.bytes += 2 * int64(bytes) // and the decoded ciphertexts
		if compute {
			size += bytes
		}
	}
	for _, id := range in.ids() {
		if err := s.Keys.Usable(id); err != nil {
			return nil, err
		}
	}
	release, err := s.reserve(in.client, in.bytes)
	if err != nil {
		return nil, err
	}
	in.release, in.body = release, make([]byte, 0, size)
	return in, nil
}

// group validates the description of a group and returns the size of its encoding.
func (s *Service) group(g *multikeyv1.InputGroup) (x group, size int, err error) {
	scheme := s.Context.Scheme
	if g.GetCount() == 0 || g.GetCount() > circuit.MaxWires {
		return x, 0, rpc.Errorf(rpc.Invalid, "", "%d ciphertexts", g.GetCount())
	}
	for i, k := range g.GetKeys() {
		if len(k) != 32 || i > 0 && bytes.Compare(g.GetKeys()[i-1], k) >= 0 {
			return x, 0, rpc.Errorf(rpc.Invalid, "", "key identifiers must have 32 bytes and be in ascending order")
		}
		x.keys = append(x.keys, multikey.KeyID(k))
	}
	x.count = int(g.GetCount())
	if len(x.keys) > scheme.Parties {
		return x, 0, fmt.Errorf("%w: %d, but %s supports %d", multikey.ErrParties, len(x.keys), scheme.Name, scheme.Parties)
	}
	switch g.GetForm() {
	case multikeyv1.InputForm_INPUT_FORM_BATCH:
		if len(x.keys) != 1 || x.count > multikey.MaxBatch {
			return x, 0, rpc.Errorf(rpc.Invalid, "", "a batch of %d bits under %d keys", x.count, len(x.keys))
		}
		return x, scheme.BatchSize(x.count), nil
	case multikeyv1.InputForm_INPUT_FORM_CIPHERTEXTS:
		x.size = scheme.CiphertextSize(len(x.keys))
		return x, x.size * x.count, nil
	}
	return x, 0, rpc.Errorf(rpc.Invalid, "", "unknown form %d", g.GetForm())
}

// check validates the data that followed the header.
func (s *Service) check(in *intake, compute bool) error {
	body := in.body
	text := body[:in.header.GetNetlistBytes()]
	header, err := proto.MarshalOptions{Deterministic: true}.Marshal(in.header)
	if err != nil {
		return err
	}
	headSum, bodySum := sha256.Sum256(header), sha256.Sum256(body)
	in.digest = sha256.Sum256(append(headSum[:], bodySum[:]...))
	n, err := circuit.Parse(text)
	if err != nil {
		return err
	}
	in.netlist = n.Digest()
	if in.program, err = n.Compile(); err != nil {
		return err
	}
	keys := make([][]multikey.KeyID, 0, in.program.InputBits())
	for _, g := range in.groups {
		for range g.count {
			keys = append(keys, g.keys)
		}
	}
	if in.cost, err = in.program.Cost(in.scheme, keys); err != nil {
		return err
	}
	if compute {
		if err := in.read(body[len(text):]); err != nil {
			return err
		}
	}
	in.bytes += int64(in.cost.Held) + 2*int64(in.cost.Output)
	return s.enlarge(in, compute)
}

// enlarge reserves the memory whose size is known only after the netlist was compiled.
func (s *Service) enlarge(in *intake, compute bool) error {
	if !compute {
		return nil
	}
	if most := s.Limits.MaxBootstraps; in.cost.Total() > most {
		return rpc.Errorf(rpc.PolicyRefused, "split the netlist, or have the operator raise multikey.max_bootstraps", "%d bootstraps, but at most %d are allowed", in.cost.Total(), most)
	}
	if limit := int64(s.Limits.MaxResults); int64(in.cost.Output) > limit {
		return rpc.Errorf(rpc.TooLarge, "split the netlist, or have the operator raise multikey.max_results", "a result of %d bytes, but the limit is %d bytes", in.cost.Output, limit)
	}
	in.release()
	release, err := s.reserve(in.client, in.bytes)
	if err != nil {
		return err
	}
	in.release = release
	return nil
}

// read decodes and validates the inputs.
func (in *intake) read(body []byte) error {
	for i := range in.groups {
		g := &in.groups[i]
		if g.size == 0 {
			n := in.scheme.BatchSize(g.count)
			b, err := in.scheme.DecodeBatch(body[:n])
			if err != nil {
				return malformed(i, err)
			}
			if b.Key != g.keys[0] {
				return malformed(i, errors.New("its keys differ from those in the header"))
			}
			g.batch, body = b, body[n:]
			continue
		}
		g.encoded, body = body[:g.count*g.size], body[g.count*g.size:]
		for j := range g.count {
			c, err := in.scheme.DecodeCiphertext(g.encoded[j*g.size : (j+1)*g.size])
			if err != nil {
				return malformed(i, err)
			}
			for k, p := range c.Parts {
				if p.Key != g.keys[k] {
					return malformed(i, errors.New("its keys differ from those in the header"))
				}
			}
		}
	}
	return nil
}

func malformed(i int, err error) error {
	if errors.Is(err, multikey.ErrSet) {
		return rpc.Errorf(rpc.Foreign, "encrypt again with the parameter set of the roster", "group %d: %v", i, err)
	}
	return rpc.Errorf(rpc.BadCiphertext, "", "group %d: %v", i, err)
}
