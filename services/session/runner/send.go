package runner

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/session/exchange"
)

// post is a message with everything that its signature covers, except the digest if it is not known
// yet.
type post struct {
	label     string // of the round in which it is sent
	message   round.Message
	envelope  exchange.Envelope
	signature []byte // of a broadcast
}

// sendQueue holds posts until they are sent, so that a party can collect messages and step
// meanwhile. Bodies are made when they are sent.
type sendQueue struct {
	mu      sync.Mutex
	batches [][]post
	closed  bool
	wake    chan struct{}
}

func newSendQueue() *sendQueue { return &sendQueue{wake: make(chan struct{}, 1)} }

func (q *sendQueue) add(b []post) {
	if len(b) == 0 {
		return
	}
	q.mu.Lock()
	q.batches = append(q.batches, b)
	q.mu.Unlock()
	q.signal()
}

func (q *sendQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
}

func (q *sendQueue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// take returns the next batch, or nil when the queue is closed and empty.
func (q *sendQueue) take(ctx context.Context) ([]post, error) {
	for {
		q.mu.Lock()
		if len(q.batches) > 0 {
			b := q.batches[0]
			q.batches[0] = nil // bodies are large
			q.batches = q.batches[1:]
			q.mu.Unlock()
			return b, nil
		}
		closed := q.closed
		q.mu.Unlock()
		if closed {
			return nil, nil
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// sendAll sends batches in order until the queue is closed.
func (d *driver) sendAll(ctx context.Context) error {
	for {
		b, err := d.queue.take(ctx)
		if err != nil || b == nil {
			return err
		}
		if err := d.sendBatch(ctx, b); err != nil {
			return err
		}
	}
}

// sendBatch sends broadcasts in order. Messages to single parties between two broadcasts are sent
// to all recipients concurrently.
func (d *driver) sendBatch(ctx context.Context, b []post) error {
	for len(b) > 0 {
		if b[0].message.To == round.All {
			if err := d.send(ctx, b[0]); err != nil {
				return err
			}
			b = b[1:]
			continue
		}
		byParty := map[round.Party][]post{}
		for len(b) > 0 && b[0].message.To != round.All {
			byParty[b[0].message.To] = append(byParty[b[0].message.To], b[0])
			b = b[1:]
		}
		g, gctx := errgroup.WithContext(ctx)
		for _, posts := range byParty {
			g.Go(func() error {
				for _, p := range posts {
					if err := d.send(gctx, p); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
	}
	return nil
}

func (d *driver) send(ctx context.Context, p post) error {
	return d.o.Session.Send(ctx, [2]string{d.o.Terms.Protocol, p.label}, p.envelope.Round, p.message, func(digest round.Digest) []byte {
		if p.signature != nil { // a broadcast is signed once, or this party would sign two versions
			return p.signature
		}
		e := p.envelope
		e.Digest = digest
		return e.Sign(d.o.Signer)
	})
}
