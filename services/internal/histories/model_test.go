package histories

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"time"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/quota"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/spans"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// share returns a party's share of a tuple: long enough for tests, and different from all others.
func share(party int, batch string, tuple, size uint64) []byte {
	b := binary.LittleEndian.AppendUint64([]byte{byte(party)}, tuple)
	sum := sha256.Sum256(append(b, batch...))
	return bytes.Repeat(sum[:], int(size)/len(sum)+1)[:size]
}

// model holds what an observer of the network knows about each party, and checks the invariants.
type model struct {
	w  *world
	mu sync.Mutex

	step    int                      // counter of the observations, to order them
	owners  [parties]map[place]owner // owner of every tuple of which a byte was sent
	bodies  map[string]string        // content of a reservation at its first delivery
	ended   [parties]map[string]end  // reservations that the party reported as ended
	dead    [parties]map[string]end  // MAC keys and batches that the party reported as unusable
	held    [parties]bool            // in quarantine, according to observations
	counted [parties]map[string]spans.Set
	rolled  [parties]bool // an older copy of its store was restored once
	active  [parties]map[string]bool
	heard   [parties][parties]uint64 // generation of the second party's store that the first party acknowledged

	wrong []string
}

type place struct {
	batch string
	tuple uint64
}

type owner struct{ reservation, client string }

// end describes the end of a reservation, a key or a batch.
type end struct {
	step   int
	why    string
	strict bool // also running streams must stop
}

func newModel(w *world) *model {
	m := &model{w: w, bodies: map[string]string{}}
	for i := range parties {
		m.owners[i], m.ended[i], m.dead[i] = map[place]owner{}, map[string]end{}, map[string]end{}
		m.counted[i], m.active[i] = map[string]spans.Set{}, map[string]bool{}
	}
	return m
}

// violated records a violated invariant. The caller must hold the lock.
func (m *model) violated(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	m.wrong = append(m.wrong, what)
	m.w.note("VIOLATION: %s", what)
}

// name distinguishes reservations: an id may be reused when every party has deleted its record, a
// week after the lease.
func name(id string, lease time.Time) string { return fmt.Sprintf("%s@%d", id, lease.UnixNano()) }

// delivery observes one stream of a party.
type delivery struct {
	m       *model
	party   int
	client  rpc.Principal
	from    uint64
	started int
	jumps   int64
	r       *tuplesv1.Reservation
	size    uint64
	tuples  []place // not yet sent
	rest    []byte  // rest of the tuple that is being sent
	late    int
}

func (m *model) delivery(ctx context.Context, i int, req *tuplesv1.FetchRequest) func(*tuplesv1.FetchResponse) {
	caller, _ := rpc.Caller(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.step++
	d := &delivery{m: m, party: i, client: caller, from: req.GetFrom(), started: m.step, jumps: m.w.parties[i].jumps.Load()}
	return func(r *tuplesv1.FetchResponse) {
		m.mu.Lock()
		defer m.mu.Unlock()
		switch {
		case r.GetReservation() != nil:
			d.begin(r.GetReservation(), r.GetTupleBytes())
		case len(r.GetChunk()) > 0:
			d.chunk(r.GetChunk())
		case len(d.tuples)+len(d.rest) > 0:
			m.violated("party %d ends the stream of %s with %d tuples left", i, d.r.GetId(), len(d.tuples))
		}
	}
}

func (d *delivery) begin(r *tuplesv1.Reservation, size uint64) {
	d.r, d.size = r, size
	skip := d.from
	for _, x := range r.GetRanges() {
		for t := range x.GetCount() {
			if skip > 0 {
				skip--
				continue
			}
			d.tuples = append(d.tuples, place{x.GetBatchId(), x.GetFirst() + t})
		}
	}
	m, c := d.m, r.GetClients()
	switch {
	case !d.client.Serves(r.GetClass().GetTenant()):
		m.violated("party %d gives %s of tenant %s to %s", d.party, r.GetId(), r.GetClass().GetTenant(), d.client.Name)
	case len(c) == 1 && c[0] != d.client.Name, len(c) > 1 && c[d.party] != d.client.Name:
		m.violated("party %d gives %s, which is reserved for %v, to %s", d.party, r.GetId(), c, d.client.Name)
	case m.held[d.party]:
		m.violated("party %d gives %s in quarantine", d.party, r.GetId())
	}
	key, body := name(r.GetId(), r.GetLease().AsTime()), bodyOf(r)
	if m.bodies[key] == "" {
		m.bodies[key] = body
	}
	if m.bodies[key] != body {
		m.violated("party %d delivers %s as %s, but it was delivered before as %s", d.party, key, body, m.bodies[key])
	}
}

func bodyOf(r *tuplesv1.Reservation) string {
	return fmt.Sprintf("%v %v %d %s %v", r.GetClass(), r.GetRanges(), r.GetEpoch(), r.GetMacKeyId(), r.GetClients())
}

// chunk observes share data that the party sends.
func (d *delivery) chunk(b []byte) {
	m := d.m
	if d.r == nil {
		m.violated("party %d sends shares before the reservation", d.party)
		return
	}
	d.timely()
	for len(b) > 0 {
		if len(d.rest) == 0 {
			if len(d.tuples) == 0 {
				m.violated("party %d sends more of %s than it has", d.party, d.r.GetId())
				return
			}
			at := d.tuples[0]
			d.tuples, d.rest = d.tuples[1:], share(d.party, at.batch, at.tuple, d.size)
			d.own(at)
		}
		n := min(len(b), len(d.rest))
		if !bytes.Equal(b[:n], d.rest[:n]) {
			m.violated("party %d sends bytes of %s that differ from the shares, %d tuples before its end", d.party, d.r.GetId(), len(d.tuples))
			return
		}
		b, d.rest = b[n:], d.rest[n:]
	}
}

func (d *delivery) own(at place) {
	m := d.m
	now := owner{name(d.r.GetId(), d.r.GetLease().AsTime()), d.client.Name}
	was, ok := m.owners[d.party][at]
	m.owners[d.party][at] = now
	if ok && was != now {
		m.violated("REUSE: tuple %d of %s at party %d goes to %v after it went to %v", at.tuple, at.batch, d.party, now, was)
	}
}

// inFlight is the number of messages that a running stream may still send after an end: the message
// being sent, and the rest of the current segment.
const inFlight = 2

// timely checks that the party may still send the shares at this time.
func (d *delivery) timely() {
	m, p := d.m, d.m.w.parties[d.party]
	why, strict := "", true
	if !p.now().Before(d.r.GetLease().AsTime()) {
		why, strict = "its lease ended", p.jumps.Load() == d.jumps
	}
	check := func(e end, ok bool) {
		if ok {
			why, strict = e.why, e.strict || e.step < d.started
		}
	}
	e, ok := m.ended[d.party][name(d.r.GetId(), d.r.GetLease().AsTime())]
	check(e, ok)
	e, ok = m.dead[d.party]["key "+d.r.GetMacKeyId()]
	check(e, ok)
	for _, x := range d.r.GetRanges() {
		e, ok = m.dead[d.party]["batch "+x.GetBatchId()]
		check(e, ok)
	}
	if why == "" {
		return
	}
	if d.late++; strict || d.late > inFlight {
		m.violated("party %d sends shares of %s to %s although %s", d.party, d.r.GetId(), d.client.Name, why)
	}
}

// answered observes a party's response.
func (m *model) answered(i int, caller rpc.Principal, method string, req, resp any, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.step++
	if err != nil {
		if e := rpc.FromError(err); e.Code == rpc.Internal && !m.w.parties[i].odd() {
			m.violated("party %d responds to %s with %v", i, method, err)
		}
		return
	}
	switch r := resp.(type) {
	case *tuplesv1.WithdrawResponse:
		m.outcomes(i, r.GetOutcomes())
	case *tuplesv1.ReleaseResponse:
		m.outcomes(i, r.GetOutcomes())
	case *tuplesv1.ProposeResponse:
		m.outcomes(i, r.GetOutcomes())
	case *tuplesv1.DrawMacKeyResponse:
		if e, ok := m.dead[i]["key "+r.GetKey().GetId()]; ok {
			m.violated("party %d gives its share of MAC key %s although %s", i, r.GetKey().GetId(), e.why)
		}
		if m.held[i] {
			m.violated("party %d gives its share of MAC key %s in quarantine", i, r.GetKey().GetId())
		}
		if req.(*tuplesv1.DrawMacKeyRequest).GetPurpose() == tuplesv1.Purpose_PURPOSE_VERIFY {
			m.dead[i]["key "+r.GetKey().GetId()] = end{m.step, "its MAC key was pooled", false}
		}
	case *tuplesv1.ReportFailedCheckResponse:
		m.dead[i]["key "+r.GetKey().GetId()] = end{m.step, "its MAC key is burnt", false}
	case *tuplesv1.RevokeResponse:
		q := req.(*tuplesv1.RevokeRequest)
		if q.GetDryRun() {
			return
		}
		for _, b := range q.GetBatchIds() {
			m.dead[i]["batch "+b] = end{m.step, "its batch is revoked", false}
		}
		if q.GetMacKeyId() != "" {
			m.dead[i]["key "+q.GetMacKeyId()] = end{m.step, "its MAC key is revoked", false}
		}
	case *tuplesv1.ConfirmResponse:
		if q := req.(*tuplesv1.ConfirmRequest); r.GetAcknowledged() && q.GetRemember() {
			m.heard[i][caller.Party] = max(m.heard[i][caller.Party], q.GetStore().GetGeneration())
		}
	case *tuplesv1.AcknowledgeResponse:
		if r.GetAccepted() {
			m.heard[i][caller.Party] = max(m.heard[i][caller.Party], req.(*tuplesv1.AcknowledgeRequest).GetStore().GetGeneration())
		}
	}
}

func (m *model) outcomes(i int, list []*tuplesv1.Outcome) {
	for _, o := range list {
		e := end{step: m.step}
		if o.GetCode() != "" {
			continue
		}
		switch o.GetState() {
		case tuplesv1.ReservationState_RESERVATION_STATE_WITHDRAWN:
			e.why, e.strict = "it was withdrawn", true
		case tuplesv1.ReservationState_RESERVATION_STATE_RELEASED:
			e.why, e.strict = "it was released", true
		case tuplesv1.ReservationState_RESERVATION_STATE_ERASED:
			e.why = "it was erased"
		default:
			continue
		}
		x, err := m.w.parties[i].vault().Reservation(o.GetId())
		if err != nil {
			continue
		}
		key := name(o.GetId(), x.Lease)
		if _, ok := m.ended[i][key]; !ok {
			m.ended[i][key] = e
		}
	}
}

// count records the deliveries in a party's records before the party may delete these.
func (m *model) count(i int) {
	v := m.w.parties[i].vault()
	if v == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	drawn := map[quota.Day]uint64{}
	err := v.Reservations("", func(r *stock.Reservation) bool {
		if r.Client == bounded {
			drawn[quota.DayOf(r.Delivered)] += r.Count()
		}
		for _, x := range r.Ranges {
			if r.Client != "" {
				m.counted[i][x.Batch] = m.counted[i][x.Batch].With(spans.Span{First: x.First, Count: x.Count})
			}
		}
		return true
	})
	for day, n := range drawn {
		if n > dayLimit {
			m.violated("party %d gave %d tuples to %s on %s, whose quota is %d", i, n, bounded, day, dayLimit)
		}
	}
	if err != nil && !m.w.parties[i].odd() && m.w.parties[i].running() {
		m.violated("party %d cannot list its reservations: %v", i, err)
	}
}

// settled checks a party after all reservations have ended: every tuple is in stock, was delivered,
// or is counted as lost.
func (m *model) settled(i int) {
	m.count(i)
	batches, err := m.w.parties[i].vault().Batches()
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil {
		m.violated("party %d cannot list its batches: %v", i, err)
		return
	}
	for _, b := range batches {
		free := uint64(0)
		for _, x := range b.Free() {
			free += x.Count
			for t := range x.Count {
				if who, ok := m.owners[i][place{b.ID, x.First + t}]; ok {
					m.violated("tuple %d of %s at party %d is in stock and went to %v", x.First+t, b.ID, i, who)
				}
			}
		}
		if k, err := m.w.parties[i].vault().MACKey(b.MACKey); err != nil || free > 0 && k.State != keys.MACActive {
			m.violated("%s is in stock at party %d under a MAC key that is %s, %v", b.ID, i, k.State, err)
		}
		went := m.counted[i][b.ID].Count()
		for at := range m.owners[i] {
			if at.batch == b.ID && m.counted[i][b.ID].Within(spans.Span{First: at.tuple, Count: 1}) == 0 && !m.rolled[i] {
				m.violated("tuple %d of %s left party %d, which did not record that", at.tuple, b.ID, i)
			}
		}
		sum := free + b.Lost + went
		if b.State == stock.BatchLocked || b.State == stock.BatchRevoked && !m.active[i][b.ID] {
			continue
		}
		if sum < b.Count || sum != b.Count && !m.rolled[i] {
			m.violated("of %d tuples of %s (%s) at party %d, %d are in stock, %d were delivered and %d are counted as lost", b.Count, b.ID,
				b.State, i, free, went, b.Lost)
		}
	}
}

// verdict returns the violated invariants, or an empty string.
func (m *model) verdict() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.wrong, "\n")
}
