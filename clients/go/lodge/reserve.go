package lodge

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
	"github.com/lodge-mpc/lodge/engine/kind"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/proto/wire"
)

// Class describes tuples, for [Client.Reserve]. All tuples of a class are interchangeable.
type Class struct {
	Kind   string // one of the kinds of package tuplefile
	Field  string // as p128
	Params string // parameter set; empty: that of the configuration
	Tenant string // empty: that of the configuration
	// Rows x Inner times Inner x Columns; only for matrices.
	Rows, Inner, Columns int
	// Convolution is the shape of convolutions, and zero for other tuples.
	Convolution tuplefile.Convolution
	// InputParty is the party that knows the values. Set it only for input masks.
	InputParty int
	// NoSacrifice requests only products that were made without a sacrifice.
	NoSacrifice bool
}

// ReserveOption changes how tuples are reserved.
type ReserveOption func(*stockv1.ReserveRequest)

// Epoch reserves tuples of this key epoch. Without it, Reserve uses the newest epoch that has
// enough tuples.
func Epoch(n uint64) ReserveOption { return func(q *stockv1.ReserveRequest) { q.Epoch = n } }

// Lease reserves the tuples for this long; the default is 10 minutes. Tuples that are not drawn by
// then are erased or returned to stock.
func Lease(d time.Duration) ReserveOption {
	return func(q *stockv1.ReserveRequest) { q.Lease = durationpb.New(d) }
}

// IdempotencyKey makes Reserve return the same reservation for the same key, of up to 64
// characters. Without it Reserve generates a key, so that its own retries reserve once.
func IdempotencyKey(key string) ReserveOption {
	return func(q *stockv1.ReserveRequest) { q.IdempotencyKey = key }
}

// For names the clients that may draw the tuples, as the parties know them: one client for all
// parties, or one for each in the order of the roster. Without it any client of the tenant may
// draw; at each party, the first client that draws is the only one.
func For(clients ...string) ReserveOption {
	return func(q *stockv1.ReserveRequest) { q.Clients = clients }
}

// Wait waits until there are enough tuples, at most until the context ends.
func Wait() ReserveOption { return func(q *stockv1.ReserveRequest) { q.Wait = true } }

// Reservation identifies tuples that are held at every party under one id. The clients of all
// parties draw the same tuples with it, by [Client.Fetch].
type Reservation struct {
	ID       string
	Class    Class
	Count    uint64 // tuples
	Epoch    uint64 // of the keys
	MACKeyID string
	Lease    time.Time // after which no shares are delivered
	Owner    string    // the client that reserved
	Clients  []string  // clients that may draw, see For
}

// Reserve reserves count tuples of a class at all parties.
func (c *Client) Reserve(ctx context.Context, class Class, count uint64, options ...ReserveOption) (*Reservation, error) {
	stock, err := c.stock()
	if err != nil {
		return nil, err
	}
	w, err := c.wire(class)
	if err != nil {
		return nil, err
	}
	q := &stockv1.ReserveRequest{Class: w, Count: count}
	for _, o := range options {
		o(q)
	}
	if q.IdempotencyKey == "" {
		q.IdempotencyKey = rand.Text()
	}
	for {
		var r *stockv1.ReserveResponse
		err := c.call(ctx, func(ctx context.Context) (err error) {
			r, err = stock.Reserve(ctx, q)
			return err
		})
		switch {
		case err == nil:
			return reservationOf(r.GetReservation()), nil
		case !q.GetWait() || ctx.Err() != nil:
			return nil, err
		case !errors.Is(err, &Error{Code: OutOfStock}) && !errors.Is(err, &Error{Code: TimedOut}):
			return nil, err
		}
		// The server has waited as long as it allows one call. A stock that refuses at once must
		// not be polled in a tight loop.
		select {
		case <-ctx.Done():
		case <-time.After(firstPause):
		}
	}
}

// Release ends a reservation of this client. It returns the number of tuples that go back into
// stock because no party delivered them; every party erases the shares of the others.
func (c *Client) Release(ctx context.Context, id string) (returned bool, err error) {
	stock, err := c.stock()
	if err != nil {
		return false, err
	}
	err = c.call(ctx, func(ctx context.Context) error {
		r, err := stock.Release(ctx, &stockv1.ReleaseRequest{Id: id})
		returned = r.GetReturned()
		return err
	})
	return returned, err
}

// Stock holds the levels of every class and epoch, as [Client.Stock] returns them.
type Stock struct {
	Levels []*stockv1.Stock
	// AsOf is the last time at which all parties reported their stock, or the zero time if the
	// coordinator has not heard from all of them since it started. In that case Levels hold only
	// the tuples in production; the stock is unknown.
	AsOf time.Time
	// Away lists the parties that could not be reached last. While there are any, no tuples can be
	// reserved.
	Away []*stockv1.AwayParty
}

// Known reports whether the numbers of Levels are known. They may be old while parties are
// unreachable.
func (s *Stock) Known() bool { return !s.AsOf.IsZero() }

// Stock requests the levels of an epoch; 0 means all epochs.
func (c *Client) Stock(ctx context.Context, epoch uint64) (*Stock, error) {
	stock, err := c.stock()
	if err != nil {
		return nil, err
	}
	var s *Stock
	err = c.call(ctx, func(ctx context.Context) error {
		r, err := stock.GetStock(ctx, &stockv1.GetStockRequest{Epoch: epoch})
		s = &Stock{Levels: r.GetStock(), Away: r.GetAway()}
		if r.GetAsOf() != nil {
			s.AsOf = r.GetAsOf().AsTime()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// MACKeyShare draws the party's share of a MAC key, which its online phase needs: a little-endian
// element below the prime.
func (c *Client) MACKeyShare(ctx context.Context, id string) (Element, error) {
	return c.drawKey(ctx, id, tuplesv1.Purpose_PURPOSE_ONLINE)
}

// PoolMACKeyShare draws the share for pooling with the other parties' shares, to check tuples. The
// sum allows forgeries, so the party burns the key and retires its epoch, including all tuples left
// under it, before it releases the share.
func (c *Client) PoolMACKeyShare(ctx context.Context, id string) (Element, error) {
	return c.drawKey(ctx, id, tuplesv1.Purpose_PURPOSE_VERIFY)
}

func (c *Client) drawKey(ctx context.Context, id string, purpose tuplesv1.Purpose) (share Element, err error) {
	tuples, err := c.tuples()
	if err != nil {
		return nil, err
	}
	err = c.call(ctx, func(ctx context.Context) error {
		r, err := tuples.DrawMacKey(ctx, &tuplesv1.DrawMacKeyRequest{MacKeyId: id, Purpose: purpose})
		share = r.GetShare()
		return err
	})
	return share, err
}

// ReportFailedCheck burns a MAC key and all tuples under it at this party, because a failed online
// check reveals the key. It returns the number of revoked batches. The reason, of up to 1000 bytes,
// is written to the party's log.
func (c *Client) ReportFailedCheck(ctx context.Context, macKeyID, reason string) (batches int, err error) {
	tuples, err := c.tuples()
	if err != nil {
		return 0, err
	}
	err = c.call(ctx, func(ctx context.Context) error {
		r, err := tuples.ReportFailedCheck(ctx, &tuplesv1.ReportFailedCheckRequest{MacKeyId: macKeyID, Reason: reason})
		batches = int(r.GetBatches())
		return err
	})
	return batches, err
}

// wire returns a class with omitted fields taken from the configuration.
func (c *Client) wire(x Class) (*tuplesv1.Class, error) {
	w := &tuplesv1.Class{Tenant: x.Tenant, Params: x.Params, Field: x.Field}
	k := kind.Of(x.Kind)
	if !k.Known() {
		return nil, Errorf(Invalid, "write one of "+strings.Join(kind.Names(), ", "), "%q is not a kind of tuples", x.Kind)
	}
	w.Kind = wire.Number(k)
	if w.Tenant == "" {
		w.Tenant = c.config.Tenant
	}
	if w.Params == "" {
		w.Params = c.config.Params
	}
	const most = 1 << 16
	if min(x.Rows, x.Inner, x.Columns, x.InputParty) < 0 || max(x.Rows, x.Inner, x.Columns, x.InputParty) > most {
		return nil, Errorf(Invalid, "", "a dimension or a party is negative or above %d", most)
	}
	if x.Convolution != (tuplefile.Convolution{}) {
		if err := x.Convolution.Check(); err != nil {
			return nil, Errorf(Invalid, "", "%v", err)
		}
		if x.Rows != 0 || x.Inner != 0 || x.Columns != 0 {
			return nil, Errorf(Invalid, "leave rows, inner and columns out", "the class has the dimensions of matrices and a convolution")
		}
	}
	w.Shape = wire.ShapeOf(x.shape())
	w.InputParty, w.NoSacrifice = uint32(x.InputParty), x.NoSacrifice
	return w, nil
}

// shape returns the shape of a tuple.
func (x Class) shape() kind.Shape {
	return kind.Shape{Matrix: kind.MatrixShape{Rows: x.Rows, Inner: x.Inner, Cols: x.Columns}, Convolution: x.Convolution}
}

func reservationOf(r *tuplesv1.Reservation) *Reservation {
	c := r.GetClass()
	s := wire.Shape(c.GetShape())
	known := ""
	if k := wire.Kind(c.GetKind()); k.Known() {
		known = k.String()
	}
	return &Reservation{
		ID: r.GetId(), Count: r.GetCount(), Epoch: r.GetEpoch(), MACKeyID: r.GetMacKeyId(), Lease: r.GetLease().AsTime(), Owner: r.GetOwner(),
		Clients: r.GetClients(),
		Class: Class{Kind: known, Field: c.GetField(), Params: c.GetParams(), Tenant: c.GetTenant(),
			Rows: s.Matrix.Rows, Inner: s.Matrix.Inner, Columns: s.Matrix.Cols, Convolution: s.Convolution,
			InputParty: int(c.GetInputParty()), NoSacrifice: c.GetNoSacrifice()},
	}
}
