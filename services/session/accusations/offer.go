package accusations

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	accusationsv1 "github.com/lodge-mpc/lodge/proto/lodge/accusations/v1"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/evidence"
	"github.com/lodge-mpc/lodge/services/store/vault/conduct"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Limits of the exchange of evidence.
const (
	maxFile  = 2 << 30 // maximum bytes of a file of evidence
	chunk    = 1 << 20 // maximum bytes of a message
	slowest  = 1 << 20 // minimum bytes per second of an upload, after grace
	grace    = 10 * time.Second
	tellTime = time.Hour // for an upload and its verification
	// Evidence that a peer does not have yet is offered again after tellAgain, or after tellLater
	// if the peer responded that it proves nothing.
	tellAgain = 10 * time.Second
	tellLater = time.Hour
	// A peer may offer offerBurst new files at once, and then one per offerEvery. After a file that
	// proves nothing it must wait for firstPause, which doubles each time.
	offerBurst = 8
	offerEvery = 30 * time.Second
	firstPause = time.Minute
	mostPause  = time.Hour
)

// limits holds the state of one peer's offers.
type limits struct {
	mu     sync.Mutex
	bucket *rate.Limiter
	pause  time.Duration // pause after the last file that proved nothing
	until  time.Time
	open   bool // whether an offer is in progress
}

func newLimits() *limits {
	return &limits{bucket: rate.NewLimiter(rate.Every(offerEvery), offerBurst)}
}

// begin starts an offer, which the caller must finish with end, or returns an error.
func (l *limits) begin(now time.Time) *rpc.Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	wait := l.until.Sub(now)
	switch {
	//lodge:check accusations/limits/one [run=TestOffersAreLimited] a peer offers several files at a
	//  time
	case l.open:
		return rpc.Errorf(rpc.Busy, "wait for the response to it", "another file of this party is being verified")
	//lodge:check accusations/limits/rate [drop=l.bucket.AllowN(now, 1)] [run=TestOffersAreLimited]
	//  a peer offers any number of files
	case wait <= 0 && l.bucket.AllowN(now, 1):
		l.open = true
		return nil
	case wait <= 0:
		wait = offerEvery
	}
	e := rpc.Errorf(rpc.RateLimited, "try again in "+wait.Round(time.Second).String(),
		"this party has offered files too often, or files that prove nothing")
	e.Retry = wait
	return e
}

// end finishes an offer; proof tells whether the file was proof.
func (l *limits) end(now time.Time, proof bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = false
	if proof {
		l.pause, l.until = 0, time.Time{}
		return
	}
	//lodge:check accusations/limits/longer [swap=2 * l.pause=>l.pause] [run=TestOffersAreLimited]
	//  the wait after files that prove nothing does not grow
	l.pause = min(max(2*l.pause, firstPause), mostPause)
	//lodge:check accusations/limits/pause [run=TestOffersAreLimited] a peer need not wait after a
	//  file that proves nothing
	l.until = now.Add(l.pause)
}

// Offer implements the service.
func (s *Service) Offer(stream accusationsv1.AccusationsService_OfferServer) error {
	known, err := s.offer(stream)
	outcome := "proven"
	switch {
	case err != nil:
		outcome = string(rpc.FromError(err).Code)
	case known:
		outcome = "known"
	}
	s.Book.Metrics.Count(metrics.Offers, 1, outcome)
	if err != nil {
		return err
	}
	return stream.SendAndClose(&accusationsv1.OfferResponse{Known: known})
}

func (s *Service) offer(stream accusationsv1.AccusationsService_OfferServer) (known bool, err error) {
	b := s.Book
	caller, ok := rpc.Caller(stream.Context())
	if !ok || caller.Party < 0 || caller.Party >= len(b.limits) {
		return false, rpc.Errorf(rpc.Unauthenticated, "", "no caller")
	}
	first, err := stream.Recv()
	if errors.Is(err, io.EOF) {
		return false, rpc.Errorf(rpc.Invalid, "send the file", "no message")
	}
	if err != nil {
		return false, err
	}
	if err := checkOffer(first); err != nil {
		return false, err
	}
	_, err = b.Vault.Accusation(conduct.EvidenceID([sha256.Size]byte(first.GetDigest())))
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, vaulterr.ErrNotFound) {
		return false, err
	}
	l := b.limits[caller.Party]
	if err := l.begin(b.Vault.Now()); err != nil {
		return false, err
	}
	select {
	case b.receiving <- struct{}{}:
		defer func() { <-b.receiving }()
	default:
		l.end(b.Vault.Now(), true)
		return false, rpc.Errorf(rpc.Busy, "try again in a moment", "another file is being verified")
	}
	proof := false
	defer func() { l.end(b.Vault.Now(), proof) }()
	err = b.take(stream, first, caller.Name)
	var nothing *evidence.Error
	switch {
	case errors.Is(err, vaulterr.ErrFull): // the file is proof, but more evidence against its accused party is not kept
		proof = true
		return true, nil
	case errors.As(err, &nothing):
		//lodge:check accusations/offer/nothing [as=proof = true] [run=TestOffer] a peer whose files
		//  prove nothing counts as one that proved something
		b.Log.Warn("a peer offered a file that proves nothing", "peer", caller.Name, "error", err)
		return false, rpc.Errorf(rpc.Invalid, "compare builds and rosters",
			"the file proves nothing here: %s: %s", nothing.Problem, nothing.Reason)
	}
	//lodge:check accusations/offer/proof [swap=err == nil=>true] [run=TestOffer] a peer that offers
	//  files that prove nothing is not slowed down
	proof = err == nil
	return false, err
}

// take stores the file of an offer and verifies it.
func (b *Book) take(stream accusationsv1.AccusationsService_OfferServer, first *accusationsv1.OfferRequest, from string) error {
	e, err := b.Vault.NewEvidence()
	if err != nil {
		return err
	}
	defer e.Abort()
	if err := receive(stream, first, e); err != nil {
		return err
	}
	_, _, err = b.convict(stream.Context(), e, from)
	return err
}

// checkOffer validates the first message of an offer.
func checkOffer(r *accusationsv1.OfferRequest) error {
	switch {
	//lodge:check accusations/offer/digest-form [drop=len(r.GetDigest()) != sha256.Size]
	//  [run=TestOffer] a file is announced without a digest or a size
	case len(r.GetDigest()) != sha256.Size || r.GetSize() == 0:
		return rpc.Errorf(rpc.Invalid, "send the file's SHA-256 and size first",
			"a digest of %d bytes of a file of %d", len(r.GetDigest()), r.GetSize())
	//lodge:check accusations/offer/size [run=TestOffer] a file of any size is accepted
	case r.GetSize() > maxFile:
		return rpc.Errorf(rpc.TooLarge, "", "a file of %d bytes, but at most %d are supported", r.GetSize(), maxFile)
	}
	return nil
}

// receive receives the file.
func receive(stream accusationsv1.AccusationsService_OfferServer, first *accusationsv1.OfferRequest, e *conduct.Evidence) error {
	left := first.GetSize()
	take := func(m *accusationsv1.OfferRequest) error {
		n := uint64(len(m.GetChunk()))
		//lodge:check accusations/offer/chunk [drop=n > chunk] [run=TestOffer] a chunk of any size
		//  is accepted
		//lodge:check accusations/offer/longer [drop=n > left] [run=TestOffer] a file can be longer
		//  than announced
		if n > chunk || n > left {
			return rpc.Errorf(rpc.TooLarge, "",
				"a chunk of more than %d bytes, or more than the announced file size of %d bytes", chunk, first.GetSize())
		}
		left -= n
		_, err := e.Write(m.GetChunk())
		return err
	}
	if err := take(first); err != nil {
		return err
	}
	limit := grace + time.Duration(first.GetSize()/slowest)*time.Second
	if err := rpc.Upload(limit, stream.Recv, take); err != nil {
		return err
	}
	//lodge:check accusations/offer/digest [swap=!bytes.Equal(sum[:],
	//  first.GetDigest())=>bytes.Equal(sum[:], nil)] [run=TestOffer] a file need not match its
	//  announced digest
	if sum := e.Digest(); !bytes.Equal(sum[:], first.GetDigest()) {
		return rpc.Errorf(rpc.Invalid, "", "the file does not match its digest, or is truncated")
	}
	return nil
}

// Run sends the peers evidence that they do not have, until ctx is done.
func (b *Book) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	wakes := make([]chan struct{}, len(b.Peers))
	for i, p := range b.Peers {
		if round.Party(i) == b.Self || p.Conn == nil {
			continue
		}
		wakes[i] = make(chan struct{}, 1)
		wg.Go(func() { b.tell(ctx, p, wakes[i]) })
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.wake:
		}
		for _, w := range wakes {
			select {
			case w <- struct{}{}:
			default:
			}
		}
	}
}

// poke makes Run look for new evidence.
func (b *Book) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// tell sends one peer the evidence that it does not have.
func (b *Book) tell(ctx context.Context, p rpc.PeerConn, wake chan struct{}) {
	later := map[string]time.Time{}
	tick := time.NewTicker(tellAgain)
	defer tick.Stop()
	for {
		all, err := b.Vault.Accusations()
		if err != nil {
			b.Log.Error("reading accusations", "error", err)
		}
		for _, a := range all {
			if a.Roster != b.roster || a.Culprit == p.Name || a.From == p.Name || a.Pardon != nil || slices.Contains(a.Told, p.Name) ||
				b.Vault.Now().Before(later[a.ID]) {
				continue
			}
			if err := b.show(ctx, p, a); err != nil {
				e := rpc.FromError(err)
				if later[a.ID] = b.Vault.Now().Add(e.Retry); e.Code == rpc.Invalid {
					later[a.ID] = b.Vault.Now().Add(tellLater)
				}
				b.Log.Warn("a peer does not accept evidence", "peer", p.Name, "accusation", a.ID, "error", err)
			}
		}
		select {
		case <-wake:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// show offers the evidence of an accusation to a peer, and records that the peer has it.
func (b *Book) show(ctx context.Context, p rpc.PeerConn, a conduct.Accusation) error {
	ctx, cancel := context.WithTimeout(ctx, tellTime)
	defer cancel()
	sum := sha256.New()
	if err := b.pieces(a, func(part []byte) error { _, err := sum.Write(part); return err }); err != nil {
		return err
	}
	stream, err := accusationsv1.NewAccusationsServiceClient(p.Conn).Offer(ctx)
	if err != nil {
		return err
	}
	err = stream.Send(&accusationsv1.OfferRequest{Digest: sum.Sum(nil), Size: a.Size})
	if err == nil {
		err = b.pieces(a, func(part []byte) error { return stream.Send(&accusationsv1.OfferRequest{Chunk: part}) })
	}
	if err != nil && !errors.Is(err, io.EOF) { // io.EOF means that the peer has already responded
		return err
	}
	if _, err := stream.CloseAndRecv(); err != nil {
		return err
	}
	return b.Vault.ToldOf(a.ID, p.Name)
}

// pieces calls each with the evidence of an accusation in chunks. A chunk is valid until each
// returns.
func (b *Book) pieces(a conduct.Accusation, each func([]byte) error) error {
	in, err := b.Vault.OpenEvidence(a.ID)
	if err != nil {
		return err
	}
	defer in.Close()
	buf := make([]byte, chunk)
	for {
		n, err := io.ReadFull(in, buf)
		if n > 0 {
			if err := each(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
	}
}
