package evaluator

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	evaluatorv1 "github.com/lodge-mpc/lodge/proto/lodge/evaluator/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// dial connects to an evaluator with the given credentials.
func (w *world) dial(e config.Evaluator, c *rpc.Credentials) evaluatorv1.EvaluatorServiceClient {
	w.t.Helper()
	conn, err := rpc.Dial(e.Address, e.Identity, c)
	must(w.t, err)
	w.t.Cleanup(func() { conn.Close() })
	return evaluatorv1.NewEvaluatorServiceClient(conn)
}

func (w *world) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	w.t.Cleanup(cancel)
	return ctx
}

func refused(t *testing.T, what string, err error, codes ...rpc.Code) {
	t.Helper()
	e := rpc.FromError(err)
	for _, code := range codes {
		if e != nil && e.Code == code {
			return
		}
	}
	t.Errorf("%s: got %v, want %s", what, err, codes)
}

// An evaluator rejects every caller except its party, for every method.
func TestNobodyElseIsServed(t *testing.T) {
	w := newWorld(t)
	e := w.start("e0", "site-a")
	w.pool(config.Trust, 1, e) // wait until it is up
	other, err := pki.NewAuthority("others", time.Hour)
	must(t, err)
	strange, err := rpc.LoadCredentials(w.files(other, partyID).Files())
	must(t, err)
	none, err := rpc.LoadCredentials(rpc.Files{CA: w.files(w.ca, "x.example").CA})
	must(t, err)
	for who, c := range map[string]struct {
		credentials *rpc.Credentials
		code        rpc.Code
	}{
		"another party":                   {w.credentials("spiffe://lodge/party/p1"), rpc.Forbidden},
		"the coordinator":                 {w.credentials("spiffe://lodge/coordinator"), rpc.Forbidden},
		"a client":                        {w.credentials("spiffe://lodge/client/p0"), rpc.Forbidden},
		"another evaluator":               {w.credentials(identityOf("e1")), rpc.Forbidden},
		"the evaluator's own certificate": {w.credentials(identityOf("e0")), rpc.Forbidden},
		"its party's identity, certified by another authority": {strange, rpc.Unavailable},
		"a client without a certificate":                       {none, rpc.Unavailable},
	} {
		client := w.dial(e, c.credentials)
		_, err := client.GetCapacity(w.context(), &evaluatorv1.GetCapacityRequest{})
		refused(t, who+", GetCapacity", err, c.code)
		put, err := client.Put(w.context())
		if err == nil {
			_, err = put.CloseAndRecv()
		}
		refused(t, who+", Put", err, c.code)
		evaluate, err := client.Evaluate(w.context())
		if err == nil {
			_, err = evaluate.Recv()
		}
		refused(t, who+", Evaluate", err, c.code)
		rotate, err := client.Rotate(w.context(), &evaluatorv1.RotateRequest{})
		if err == nil {
			_, err = rotate.Recv()
		}
		refused(t, who+", Rotate", err, c.code)
	}
}

// A party rejects an evaluator with another identity.
func TestAnEvaluatorOfAnotherIdentity(t *testing.T) {
	w := newWorld(t)
	f, e := w.configure("e0", "site-a")
	f.TLS = w.files(w.ca, identityOf("e1"))
	w.run(f)
	p := w.pool(config.Trust, 0, e)
	w.until("the party has checked the identity", func() bool {
		p.look(t.Context(), p.processes[0])
		return w.value("lodge_evaluator_up", "e0") == 0 && p.upNow() == 0 && len(p.processes[0].instances) == 1
	})
	_, err := w.dial(e, w.credentials(partyID)).GetCapacity(w.context(), &evaluatorv1.GetCapacityRequest{})
	if err == nil || p.For(w.under) != nil {
		t.Error("an evaluator of another identity is asked")
	}
}

// header returns a header that an evaluator accepts and whose materials it has.
func (w *world) header() *evaluatorv1.EvaluateHeader {
	hash := w.under.Scheme.Set.Hash()
	u := *New(Options{Check: config.Trust, Processes: []config.Evaluator{{Name: "x"}}}).bind(w.under)
	h := &evaluatorv1.EvaluateHeader{
		Nonce: make([]byte, nonceSize), Params: testSet, ParamsHash: hash[:], Field: testField, KeysDigest: u.KeysDigest[:], MacKeyDigest: u.macDigest[:],
	}
	s := small()
	header(h, &s)
	return h
}

// ask sends messages and returns the messages after the response to the header, or the error.
func ask(ctx context.Context, c evaluatorv1.EvaluatorServiceClient, list ...*evaluatorv1.EvaluateRequest) (*evaluatorv1.Answer, error) {
	stream, err := c.Evaluate(ctx, grpc.MaxCallSendMsgSize(64<<20))
	if err != nil {
		return nil, err
	}
	for _, m := range list {
		if stream.Send(m) != nil {
			break // Recv returns the reason
		}
	}
	stream.CloseSend()
	var answer *evaluatorv1.Answer
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return answer, nil
		}
		if err != nil {
			return answer, err
		}
		if m.GetAnswer() != nil {
			answer = m.GetAnswer()
		}
	}
}

// An evaluator rejects every invalid header, shape and input, and continues to serve.
func TestRequestsAreRefused(t *testing.T) {
	w := newWorld(t)
	f, e := w.configure("e0", "site-a")
	f.MaxMemory = 64 << 20
	w.run(f)
	p := w.pool(config.Trust, 1, e)
	w.evaluates(p, w.task(1, small())) // uploads the keys
	client := w.dial(e, w.credentials(partyID))
	for what, c := range map[string]struct {
		change func(h *evaluatorv1.EvaluateHeader)
		code   rpc.Code
	}{
		"no nonce":               {func(h *evaluatorv1.EvaluateHeader) { h.Nonce = nil }, rpc.Invalid},
		"a long nonce":           {func(h *evaluatorv1.EvaluateHeader) { h.Nonce = make([]byte, nonceSize+1) }, rpc.Invalid},
		"an unknown set":         {func(h *evaluatorv1.EvaluateHeader) { h.Params = "insecure-6" }, rpc.PolicyRefused},
		"another hash":           {func(h *evaluatorv1.EvaluateHeader) { h.ParamsHash[0] ^= 1 }, rpc.PinMismatch},
		"an unknown field":       {func(h *evaluatorv1.EvaluateHeader) { h.Field = "p7" }, rpc.Invalid},
		"a short digest of keys": {func(h *evaluatorv1.EvaluateHeader) { h.KeysDigest = h.KeysDigest[1:] }, rpc.Invalid},
		"no digest of a MAC key": {func(h *evaluatorv1.EvaluateHeader) { h.MacKeyDigest = nil }, rpc.Invalid},
		"no inputs":              {func(h *evaluatorv1.EvaluateHeader) { h.Inputs = 0 }, rpc.Invalid},
		"too many inputs":        {func(h *evaluatorv1.EvaluateHeader) { h.Inputs = 1 << 31 }, rpc.Invalid},
		"more memory than the limit": {func(h *evaluatorv1.EvaluateHeader) {
			h.Dim, h.Rows, h.Inner, h.Columns, h.Inputs = 4, 1, 4096, 1, 32768
		}, rpc.TooLarge},
		"a product of an input that does not exist": {func(h *evaluatorv1.EvaluateHeader) { h.Pairs[1].Left = 3 }, rpc.Invalid},
		"more alphas than inputs":                   {func(h *evaluatorv1.EvaluateHeader) { h.Last = 4 }, rpc.Invalid},
		"from behind":                               {func(h *evaluatorv1.EvaluateHeader) { h.First, h.Last = 2, 1 }, rpc.Invalid},
		"no primes":                                 {func(h *evaluatorv1.EvaluateHeader) { h.Primes = 0 }, rpc.Invalid},
		"too many primes":                           {func(h *evaluatorv1.EvaluateHeader) { h.Primes = 99 }, rpc.Invalid},
		"blocks of 3":                               {func(h *evaluatorv1.EvaluateHeader) { h.Dim, h.Rows, h.Inner, h.Columns, h.Inputs = 3, 1, 1, 1, 6 }, rpc.Invalid},
		"blocks of size 0":                          {func(h *evaluatorv1.EvaluateHeader) { h.Rows = 1 }, rpc.Invalid},
		"matrices beyond the inputs":                {func(h *evaluatorv1.EvaluateHeader) { h.Dim, h.Rows, h.Inner, h.Columns = 4, 1, 1, 1 }, rpc.Invalid},
		"blocks without keys":                       {func(h *evaluatorv1.EvaluateHeader) { h.Dim, h.Rows, h.Inner, h.Columns, h.Inputs = 8, 1, 1, 1, 16 }, rpc.Invalid},
	} {
		h := w.header()
		c.change(h)
		_, err := ask(w.context(), client, &evaluatorv1.EvaluateRequest{Header: h})
		refused(t, what, err, c.code)
	}
	primes := w.under.Scheme.Q.Primes()
	good := codec.AppendPoly(nil, randomCiphertext(w.under.Scheme, 1).C0.C, primes)
	over := append([]byte{}, good...)
	for i := range 16 {
		over[i] = 255
	}
	frames := func(list ...[]byte) (out []*evaluatorv1.EvaluateRequest) {
		out = append(out, &evaluatorv1.EvaluateRequest{Header: w.header()})
		for _, b := range list {
			out = append(out, &evaluatorv1.EvaluateRequest{Frame: b})
		}
		return out
	}
	for what, c := range map[string]struct {
		list []*evaluatorv1.EvaluateRequest
		code rpc.Code
	}{
		"nothing":                   {nil, rpc.Invalid},
		"no header":                 {frames(good)[1:], rpc.Invalid},
		"a header with a frame":     {[]*evaluatorv1.EvaluateRequest{{Header: w.header(), Frame: good}}, rpc.Invalid},
		"a second header":           {append(frames(good), frames()...), rpc.Invalid},
		"too few polynomials":       {frames(good, good, good, good, good), rpc.Invalid},
		"too many":                  {frames(good, good, good, good, good, good, good), rpc.Invalid},
		"a truncated polynomial":    {frames(good[1:]), rpc.Invalid},
		"an extended polynomial":    {frames(append(good[:len(good):len(good)], 0)), rpc.Invalid},
		"a residue above its prime": {frames(over), rpc.Invalid},
		"a message of 32 MiB":       {frames(make([]byte, 32<<20)), rpc.TooLarge},
	} {
		_, err := ask(w.context(), client, c.list...)
		refused(t, what, err, c.code)
	}
	if a, err := ask(w.context(), client, frames(good, good, good, good, good, good)...); err != nil || len(a.GetMissing()) > 0 {
		t.Errorf("a valid request: %v, %v", a, err)
	}
	w.evaluates(p, w.task(2, small()))
}

// Requests that differ in any field have different digests.
func TestEveryFieldOfAHeaderIsBound(t *testing.T) {
	w := newWorld(t)
	h := w.header()
	seen := map[[32]byte]string{requestDigest(h): "nothing"}
	for i, change := range []func(h *evaluatorv1.EvaluateHeader){
		func(h *evaluatorv1.EvaluateHeader) { h.Nonce[0]++ }, func(h *evaluatorv1.EvaluateHeader) { h.Params += "x" },
		func(h *evaluatorv1.EvaluateHeader) { h.ParamsHash[0]++ }, func(h *evaluatorv1.EvaluateHeader) { h.Field += "x" },
		func(h *evaluatorv1.EvaluateHeader) { h.KeysDigest[0]++ }, func(h *evaluatorv1.EvaluateHeader) { h.MacKeyDigest[0]++ },
		func(h *evaluatorv1.EvaluateHeader) { h.Inputs++ }, func(h *evaluatorv1.EvaluateHeader) { h.Rows++ },
		func(h *evaluatorv1.EvaluateHeader) { h.Inner++ }, func(h *evaluatorv1.EvaluateHeader) { h.Columns++ },
		func(h *evaluatorv1.EvaluateHeader) { h.Dim++ }, func(h *evaluatorv1.EvaluateHeader) { h.Pairs[0].Left++ },
		func(h *evaluatorv1.EvaluateHeader) { h.Pairs[1].Right++ }, func(h *evaluatorv1.EvaluateHeader) { h.Pairs = h.Pairs[1:] },
		func(h *evaluatorv1.EvaluateHeader) { h.First++ }, func(h *evaluatorv1.EvaluateHeader) { h.Last++ }, func(h *evaluatorv1.EvaluateHeader) { h.Primes++ },
	} {
		other := proto.CloneOf(w.header())
		change(other)
		d := requestDigest(other)
		if what, ok := seen[d]; ok {
			t.Errorf("change %d has the same digest as %s", i, what)
		}
		seen[d] = "an earlier change"
	}
	if n := h.ProtoReflect().Descriptor().Fields().Len(); n != 15 {
		t.Errorf("a header has %d fields, but the digest binds 15", n)
	}
}

// An uploaded material is kept only if it matches its digest. The least recently used material is
// evicted first.
func TestPut(t *testing.T) {
	w := newWorld(t)
	f, e := w.configure("e0", "site-a")
	size := keysBytes(w.under.Scheme, testDim)
	f.MaxKeysMemory = config.Bytes(size + 2*operandBytes(w.under.Scheme))
	w.run(f)
	p := w.pool(config.Trust, 1, e)
	client := w.dial(e, w.credentials(partyID))
	u := p.bind(w.under)
	hash := w.under.Scheme.Set.Hash()
	put := func(h *evaluatorv1.PutHeader, frames ...[]byte) error {
		stream, err := client.Put(w.context())
		must(t, err)
		stream.Send(&evaluatorv1.PutRequest{Header: h})
		for _, b := range frames {
			if stream.Send(&evaluatorv1.PutRequest{Frame: b}) != nil {
				break
			}
		}
		_, err = stream.CloseAndRecv()
		return err
	}
	keys := func() (list [][]byte) {
		for i := range keygen.EncodedFrames(w.under.Scheme, testDim) {
			list = append(list, w.under.Keys.Frame(w.under.Scheme, i))
		}
		return list
	}
	good := func() *evaluatorv1.PutHeader {
		return &evaluatorv1.PutHeader{Material: evaluatorv1.Material_MATERIAL_KEYS, Digest: u.KeysDigest[:], Params: testSet, ParamsHash: append([]byte{}, hash[:]...), Dim: testDim}
	}
	mac := func(digest []byte) *evaluatorv1.PutHeader {
		return &evaluatorv1.PutHeader{Material: evaluatorv1.Material_MATERIAL_MAC_KEY, Digest: digest, Params: testSet, ParamsHash: hash[:], Field: testField}
	}
	changed := keys()
	changed[0] = append([]byte{changed[0][0] ^ 1}, changed[0][1:]...)
	swapped := keys()
	swapped[1], swapped[2] = swapped[2], swapped[1]
	zero := sha256.Sum256(nil)
	for what, c := range map[string]struct {
		change func(h *evaluatorv1.PutHeader)
		frames [][]byte
		code   rpc.Code
	}{
		"keys with another digest":    {nil, changed, rpc.Invalid},
		"frames in another order":     {nil, swapped, rpc.Invalid},
		"a digest of other keys":      {func(h *evaluatorv1.PutHeader) { h.Digest = zero[:] }, keys(), rpc.Invalid},
		"one frame fewer":             {nil, keys()[1:], rpc.Invalid},
		"one frame more":              {nil, append(keys(), []byte{0}), rpc.Invalid},
		"no digest":                   {func(h *evaluatorv1.PutHeader) { h.Digest = nil }, keys(), rpc.Invalid},
		"no material":                 {func(h *evaluatorv1.PutHeader) { h.Material = 0 }, keys(), rpc.Invalid},
		"a dimension of 3":            {func(h *evaluatorv1.PutHeader) { h.Dim = 3 }, keys(), rpc.Invalid},
		"keys of one field":           {func(h *evaluatorv1.PutHeader) { h.Field = testField }, keys(), rpc.Invalid},
		"keys above the memory limit": {func(h *evaluatorv1.PutHeader) { h.Dim = 64 }, keys(), rpc.TooLarge},
		"another set":                 {func(h *evaluatorv1.PutHeader) { h.Params = "S14-32" }, keys(), rpc.PolicyRefused},
		"another hash of the set":     {func(h *evaluatorv1.PutHeader) { h.ParamsHash[0] ^= 1 }, keys(), rpc.PinMismatch},
	} {
		h := good()
		if c.change != nil {
			c.change(h)
		}
		refused(t, what, put(h, c.frames...), c.code)
	}
	refused(t, "a MAC key of one polynomial", put(mac(u.macDigest[:]), u.macFrames[0]), rpc.Invalid)
	refused(t, "a MAC key of three", put(mac(u.macDigest[:]), u.macFrames[0], u.macFrames[1], nil), rpc.Invalid)
	refused(t, "a MAC key with another digest", put(mac(u.macDigest[:]), u.macFrames[1], u.macFrames[0]), rpc.Invalid)
	missing := func() int {
		a, err := ask(w.context(), client, &evaluatorv1.EvaluateRequest{Header: w.header()})
		if a == nil {
			t.Fatal(err)
		}
		return len(a.GetMissing())
	}
	if n := missing(); n != 2 {
		t.Errorf("%d materials are missing after every upload was rejected", n)
	}
	must(t, put(good(), keys()...))
	must(t, put(good(), keys()...)) // the second time
	must(t, put(mac(u.macDigest[:]), u.macFrames[0], u.macFrames[1]))
	if n := missing(); n != 0 {
		t.Errorf("%d materials are missing", n)
	}
	for label := range uint64(3) { // other MAC keys, until the memory is too small for the first MAC key and the keys
		other := w.under
		other.MACKey = randomCiphertext(w.under.Scheme, 5000+label)
		o := p.bind(other)
		must(t, put(mac(o.macDigest[:]), o.macFrames[0], o.macFrames[1]))
	}
	if n := missing(); n == 0 {
		t.Error("no material was evicted")
	}
	w.evaluates(p, w.task(1, small())) // they are uploaded again
}

// An evaluation that does not fit next to the running ones is refused as busy. The pool waits while
// its own evaluations run, and computes locally while other requesters' evaluations run.
func TestBusy(t *testing.T) {
	b := &budget{limit: 100, most: 2}
	leave, err := b.take(60)
	must(t, err)
	_, err = b.take(60)
	refused(t, "no memory", err, rpc.Busy)
	_, err = b.take(101)
	refused(t, "never memory", err, rpc.TooLarge)
	second, err := b.take(40)
	must(t, err)
	_, err = b.take(0)
	refused(t, "no place", err, rpc.Busy)
	leave()
	second()
	if n, bytes := b.load(); n != 0 || bytes != 0 {
		t.Errorf("%d evaluations and %d bytes are not released", n, bytes)
	}

	w := newWorld(t)
	f, e := w.configure("e0", "site-a")
	s := small()
	f.MaxMemory = config.Bytes(s.MemoryBytes(w.under.Scheme, 64)) // enough memory for one evaluation
	f.MaxConcurrent = 8
	w.run(f)
	p := w.pool(config.Trust, 1, e)
	done := make(chan struct{})
	for i := range 6 {
		go func() {
			w.evaluates(p, w.task(uint64(i), small()))
			done <- struct{}{}
		}()
	}
	for range 6 {
		<-done
	}
	if len(w.blamed()) > 0 {
		t.Errorf("%v were excluded", w.blamed())
	}
}

// Keys in use are not evicted.
func TestTheCacheKeepsWhatIsInUse(t *testing.T) {
	c := newCache(10)
	at := func(n byte) place { return place{digest: [32]byte{n}} }
	for n := range byte(2) {
		keep, err := c.reserve(at(n), 5)
		must(t, err)
		keep(n)
	}
	_, release, ok := c.take(at(0))
	if !ok {
		t.Fatal("the material is missing")
	}
	keep, err := c.reserve(at(2), 5)
	must(t, err)
	if _, _, there := c.take(at(1)); there {
		t.Error("the least recently used material was not evicted")
	}
	_, err = c.reserve(at(3), 5)
	refused(t, "no room", err, rpc.Busy)
	_, err = c.reserve(at(3), 11)
	refused(t, "never room", err, rpc.TooLarge)
	keep(nil) // the material was not received
	if c.bytes() != 5 {
		t.Errorf("%d bytes", c.bytes())
	}
	release()
	keep, err = c.reserve(at(4), 10)
	must(t, err)
	keep(true)
	if _, _, there := c.take(at(0)); there || c.bytes() != 10 {
		t.Errorf("%d bytes", c.bytes())
	}
}
