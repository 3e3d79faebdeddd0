package byzantine

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/engine/protocol/cheattest"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/session/exchange"
	"github.com/lodge-mpc/lodge/services/session/runner"
)

// A lying coordinator gains nothing: its requests are rejected, or the parties detect that they
// received different requests, and no tuple is delivered unless all parties have the same
// reservation.
func TestLyingCoordinator(t *testing.T) { underAttack(t, lieOf, func(i int) bool { return i%16 == 0 }) }

// newHonest is a cluster with two epochs and a MAC key.
func newHonest(t *testing.T, n int) *cluster {
	t.Helper()
	c := newCluster(t, n)
	for range 2 {
		s := c.spec(cheattest.Keys)
		c.complete(s)
		c.epoch = s.GetEpoch()
	}
	c.complete(c.spec(cheattest.Scalars))
	return c
}

// lieOf is the test of an attack of the coordinator; nil if it is somebody else's.
func lieOf(name string) func(c *cluster) {
	if f, ok := strings.CutPrefix(name, "spec-"); ok {
		return func(c *cluster) { c.liesInSpec(f) }
	}
	if f, ok := strings.CutPrefix(name, "bad-spec-"); ok {
		return func(c *cluster) { c.asksNonsense(f) }
	}
	if f, ok := strings.CutPrefix(name, "reservation-"); ok {
		return func(c *cluster) { c.liesInReservation(f) }
	}
	return map[string]func(c *cluster){
		"two-names": (*cluster).twoNames, "activates-early": (*cluster).activatesEarly,
		"activates-another": (*cluster).activatesAnother,
		"activates-for-one": (*cluster).activatesForOne, "reserves-twice": (*cluster).reservesTwice,
		"reserves-for-one": (*cluster).reservesForOne,
		"starts-for-some":  (*cluster).startsForSome,
	}[name]
}

// replace sets a field of a message.
func replace(m proto.Message, field string, v any) {
	r := m.ProtoReflect()
	d := r.Descriptor().Fields().ByName(protoreflect.Name(field))
	if list, ok := v.([]*tuplesv1.Range); ok {
		r.Clear(d)
		for _, x := range list {
			r.Mutable(d).List().Append(protoreflect.ValueOfMessage(x.ProtoReflect()))
		}
		return
	}
	if list, ok := v.([]string); ok {
		r.Clear(d)
		for _, x := range list {
			r.Mutable(d).List().Append(protoreflect.ValueOfString(x))
		}
		return
	}
	if list, ok := v.([]uint32); ok {
		r.Clear(d)
		for _, x := range list {
			r.Mutable(d).List().Append(protoreflect.ValueOfUint32(x))
		}
		return
	}
	if x, ok := v.(proto.Message); ok {
		v = x.ProtoReflect()
	}
	r.Set(d, protoreflect.ValueOf(v))
}

// others are other values of the fields of a spec, which its party could accept where there are
// such.
func (c *cluster) others(s *jobv1.SessionSpec) map[string]any {
	other := func(b []byte) []byte { return append([]byte{b[0] ^ 1}, b[1:]...) }
	return map[string]any{
		"ref":              &jobv1.SessionRef{JobId: s.GetRef().GetJobId(), Ordinal: 2},
		"protocol":         protoreflect.EnumNumber(jobv1.Protocol_PROTOCOL_POPK),
		"protocol_version": s.GetProtocolVersion() + 1, "params": "insecure-8",
		"params_hash": other(s.GetParamsHash()), "roster_hash": other(s.GetRosterHash()),
		"field": "p64", "kind": protoreflect.EnumNumber(jobv1.Kind_KIND_SQUARE), "dim": uint32(2),
		"shape": &jobv1.Shape{Rows: 1, Inner: 1, Columns: 1},
		"count": s.GetCount() + 1, "epoch": s.GetEpoch() - 1,
		"purpose": protoreflect.EnumNumber(jobv1.Purpose_PURPOSE_DECRYPTION), "tenant": tenant(299),
		"deadline": timestamppb.New(s.GetDeadline().AsTime().Add(time.Second)), "input_party": uint32(1),
		"no_sacrifice": true,
		"threshold":    uint32(1), "group": []uint32{0, 1}, "form": protoreflect.EnumNumber(jobv1.MaskForm_MASK_FORM_PAPER),
		"from_epoch": uint64(1), "from_digest": make([]byte, 32), "from_threshold": uint32(1), "from_holders": []uint32{1, 2},
		"galois": []uint32{3},
	}
}

// liesInSpec asks party 0 for something else than the others.
func (c *cluster) liesInSpec(field string) {
	s := c.spec(cheattest.Scalars)
	v, ok := c.others(s)[field]
	if !ok {
		c.t.Fatalf("no lie about %s is known", field)
	}
	lie := proto.Clone(s).(*jobv1.SessionSpec)
	replace(lie, field, v)
	begun := c.begin(0, lie) == nil
	for i := 1; i < len(c.conns); i++ {
		must(c.t, c.begin(i, s))
	}
	if begun && field != "ref" { // then party 0 and the others mean different sessions
		for i := range c.conns {
			st := c.await(i, s)
			f := st.GetFailure()
			if st.GetState() != jobv1.JobState_JOB_STATE_FAILED || f.GetCheck() != exchange.CheckPins || runner.Outcome(f.GetOutcome()) == runner.Blamed {
				c.t.Errorf("party %d: %v", i, st)
			}
		}
	}
	if begun {
		c.cancel(0, lie)
	}
	for i := 1; i < len(c.conns); i++ {
		c.cancel(i, s)
	}
	for i := range c.conns {
		if c.has(i, s) {
			c.t.Errorf("party %d has a result", i)
		}
	}
}

// asksNonsense asks every party for something that cannot be.
func (c *cluster) asksNonsense(field string) {
	s := c.spec(cheattest.Scalars)
	v, ok := map[string]any{
		"ref": &jobv1.SessionRef{JobId: "../x", Ordinal: 1}, "protocol": protoreflect.EnumNumber(99),
		"protocol_version": uint32(1 << 31), "params": strings.Repeat("x", 65),
		"params_hash": make([]byte, 31), "roster_hash": make([]byte, 1<<20), "field": "p65",
		"kind": protoreflect.EnumNumber(99), "dim": uint32(0),
		"shape": &jobv1.Shape{Rows: 1 << 31, Inner: 1 << 31, Columns: 1 << 31}, "count": uint64(1 << 63),
		"epoch": uint64(0), "purpose": protoreflect.EnumNumber(99),
		"tenant": "../x", "deadline": &timestamppb.Timestamp{Seconds: 1 << 62}, "input_party": uint32(1 << 31),
		"no_sacrifice": true,
		"threshold":    uint32(1 << 31), "group": []uint32{0, 1 << 31}, "form": protoreflect.EnumNumber(99),
		"from_epoch": uint64(1 << 63), "from_digest": make([]byte, 1<<20), "from_threshold": uint32(1 << 31), "from_holders": []uint32{1 << 31},
		"galois": []uint32{1 << 31},
	}[field]
	if !ok {
		c.t.Fatalf("no nonsense about %s is known", field)
	}
	replace(s, field, v)
	for i := range c.conns {
		err := c.begin(i, s)
		if e := rpc.FromError(err); err == nil || e.Code == rpc.Internal || e.Code == rpc.Unavailable {
			c.t.Errorf("party %d: %v", i, err)
		}
	}
}

// twoNames starts another session under the name of a running session.
func (c *cluster) twoNames() {
	s := c.spec(cheattest.Scalars)
	c.complete(s)
	again := proto.Clone(s).(*jobv1.SessionSpec)
	again.Count++
	for i := range c.conns {
		c.refused(c.begin(i, again), rpc.Conflict)
	}
}

func (c *cluster) refused(err error, code rpc.Code) {
	c.t.Helper()
	if e := rpc.FromError(err); e == nil || e.Code != code {
		c.t.Errorf("got %v, want %s", err, code)
	}
}

func (c *cluster) activate(i int, s *jobv1.SessionSpec, digest []byte) error {
	_, err := triplesv1.NewTriplesServiceClient(c.conns[i]).Activate(c.context(),
		&jobv1.ActivateRequest{Ref: s.GetRef(), Digest: digest})
	return err
}

// activatesEarly activates at party 0 while the last party has not been asked.
func (c *cluster) activatesEarly() {
	s := c.spec(cheattest.Scalars)
	for i := range len(c.conns) - 1 {
		must(c.t, c.begin(i, s))
	}
	c.refused(c.activate(0, s, make([]byte, 32)), rpc.Conflict)
	for i := range len(c.conns) - 1 {
		c.cancel(i, s)
	}
}

func (c *cluster) activatesAnother() {
	s := c.spec(cheattest.Scalars)
	all := c.run(s, len(c.conns))
	digest := append([]byte{all[0].GetDigest()[0] ^ 1}, all[0].GetDigest()[1:]...)
	for i := range c.conns {
		c.refused(c.activate(i, s, digest), rpc.Conflict)
		c.refused(c.activate(i, s, nil), rpc.Conflict)
		c.cancel(i, s)
		c.refused(c.activate(i, s, all[0].GetDigest()), rpc.Burnt) // it is erased
	}
}

// startsForSome leaves out the last party.
func (c *cluster) startsForSome() {
	s := c.spec(cheattest.Scalars)
	last := len(c.conns) - 1
	for i := range last {
		must(c.t, c.begin(i, s))
	}
	for i := range last {
		f := c.await(i, s).GetFailure()
		if o := runner.Outcome(f.GetOutcome()); o != runner.Timeout && o != runner.PeerAbort {
			c.t.Errorf("party %d: %v", i, f)
		}
	}
}

// client is the party's own.
func (c *cluster) client(i int) *grpc.ClientConn {
	c.t.Helper()
	credentials, err := c.files.Credentials(devnet.ClientName(i))
	must(c.t, err)
	m := c.files.Roster.Parties[i]
	conn, err := rpc.Dial(m.Address, m.Identity, credentials)
	must(c.t, err)
	c.t.Cleanup(func() { conn.Close() })
	return conn
}

// fetch draws a reservation at a party, and gives how many bytes came.
func fetch(client *grpc.ClientConn, id string) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	stream, err := tuplesv1.NewTuplesServiceClient(client).Fetch(ctx, &tuplesv1.FetchRequest{ReservationId: id})
	bytes := 0
	for err == nil {
		var r *tuplesv1.FetchResponse
		if r, err = stream.Recv(); err == nil {
			bytes += len(r.GetChunk())
		}
	}
	if errors.Is(err, io.EOF) {
		return bytes, nil
	}
	return bytes, err
}

// reservation is of all tuples of a new batch, which party 0 alone has active where alone is set.
func (c *cluster) reservation(alone bool) *tuplesv1.Reservation {
	c.t.Helper()
	s := c.spec(cheattest.Scalars)
	for i, st := range c.run(s, len(c.conns)) {
		if i == 0 || !alone {
			must(c.t, c.activate(i, s, st.GetDigest()))
		} else {
			c.cancel(i, s)
		}
	}
	list, err := tuplesv1.NewTuplesServiceClient(c.conns[0]).ListBatches(c.context(), &tuplesv1.ListBatchesRequest{})
	must(c.t, err)
	for _, b := range list.GetBatches() {
		if strings.HasPrefix(b.GetId(), s.GetRef().GetJobId()+"-") {
			return &tuplesv1.Reservation{
				Id: "r-" + b.GetId(), Class: b.GetClass(), Epoch: b.GetEpoch(), MacKeyId: b.GetMacKeyId(),
				Owner: "owner", Count: b.GetCount(),
				Ranges: []*tuplesv1.Range{{BatchId: b.GetId(), Count: b.GetCount()}},
				Lease:  timestamppb.New(time.Now().Add(time.Hour)),
			}
		}
	}
	c.t.Fatal("there is no batch")
	return nil
}

// propose asks party i to record a reservation, and returns its response.
func (c *cluster) propose(i int, r *tuplesv1.Reservation) *tuplesv1.Outcome {
	c.t.Helper()
	out, err := tuplesv1.NewTuplesServiceClient(c.conns[i]).Propose(c.context(),
		&tuplesv1.ProposeRequest{Reservations: []*tuplesv1.Reservation{r}})
	must(c.t, err)
	return out.GetOutcomes()[0]
}

// nothing fails the test if party i gives something away.
func (c *cluster) nothing(i int, id string) {
	c.t.Helper()
	if bytes, err := fetch(c.client(i), id); err == nil || bytes > 0 {
		c.t.Errorf("party %d has given %d bytes of %s away (%v)", i, bytes, id, err)
	}
}

func (c *cluster) activatesForOne() {
	r := c.reservation(true)
	c.propose(0, r)
	c.nothing(0, r.GetId())
}

func (c *cluster) reservesForOne() {
	r := c.reservation(false)
	if o := c.propose(0, r); o.GetCode() != "" {
		c.t.Fatal(o)
	}
	c.nothing(0, r.GetId())
}

func (c *cluster) reservesTwice() {
	r := c.reservation(false)
	for i := range c.conns {
		if o := c.propose(i, r); o.GetCode() != "" {
			c.t.Fatal(o)
		}
	}
	again := proto.Clone(r).(*tuplesv1.Reservation)
	again.Id += "-again"
	for i := range c.conns {
		if o := c.propose(i, again); o.GetCode() == "" {
			c.t.Errorf("party %d has reserved the same tuples twice", i)
		}
		if bytes, err := fetch(c.client(i), r.GetId()); err != nil || bytes == 0 {
			c.t.Errorf("party %d gives %d bytes: %v", i, bytes, err)
		}
		c.nothing(i, again.GetId())
	}
}

// liesInReservation has party 0 record something else than the others.
func (c *cluster) liesInReservation(field string) {
	r := c.reservation(false)
	class := proto.Clone(r.GetClass()).(*tuplesv1.Class)
	class.Tenant = tenant(0)
	v, ok := map[string]any{
		"id": r.GetId() + "-other", "class": class, "epoch": r.GetEpoch() - 1, "mac_key_id": "mac-0000000000000000",
		"ranges": []*tuplesv1.Range{{BatchId: r.GetRanges()[0].GetBatchId(), Count: r.GetCount() - 1}},
		"count":  r.GetCount() - 1, "owner": "other",
		"clients": []string{devnet.ClientName(0)}, "lease": timestamppb.New(r.GetLease().AsTime().Add(time.Minute)),
		"digest": make([]byte, 32),
		"state":  protoreflect.EnumNumber(tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED), "client": "other",
		"delivered": timestamppb.Now(),
	}[field]
	if !ok {
		c.t.Fatalf("no lie about %s is known", field)
	}
	lie := proto.Clone(r).(*tuplesv1.Reservation)
	replace(lie, field, v)
	said := []*tuplesv1.Outcome{c.propose(0, lie)}
	for i := 1; i < len(c.conns); i++ {
		o := c.propose(i, r)
		if o.GetCode() != "" {
			c.t.Fatal(o)
		}
		said = append(said, o)
	}
	same := said[0].GetCode() == "" && lie.GetId() == r.GetId() && string(said[0].GetDigest()) == string(said[1].GetDigest())
	var wg sync.WaitGroup
	for i := range c.conns {
		id := r.GetId()
		if i == 0 {
			id = lie.GetId()
		}
		client := c.client(i)
		wg.Go(func() {
			if same {
				if bytes, err := fetch(client, id); err != nil || bytes == 0 {
					c.t.Errorf("the reservation is the same everywhere, and party %d gives %d bytes: %v", i, bytes, err)
				}
			} else if bytes, err := fetch(client, id); err == nil || bytes > 0 {
				c.t.Errorf("party %d has given %d bytes away (%v)", i, bytes, err)
			}
		})
	}
	wg.Wait()
}
