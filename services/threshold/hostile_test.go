package threshold_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// eventually waits for a condition.
func (w *world) eventually(what string, ok func() bool) {
	w.Helper()
	for until := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			w.Fatalf("%s: timed out after two minutes", what)
		}
	}
}

// A client is rejected with these codes if it opens streams without sending, announces more than
// the memory or a rule allows, or exceeds its number of concurrent calls. Other clients are served
// meanwhile, and so is the same client after it closes the calls.
func TestHostileRequests(t *testing.T) {
	w := newWorld(t, 3, func(i int, f *config.PartyFile) {
		f.Threshold.Rules = []config.DecryptRule{
			{Client: devnet.App, AnyCiphertexts: true, MessagesPerHour: 1 << 30, MaxMessages: 1 << 20},
			{Client: devnet.Operator, AnyCiphertexts: true, MessagesPerHour: 1 << 30, MaxMessages: 1 << 20},
		}
		f.Clients[2].Permissions = append(f.Clients[2].Permissions, config.PermDecrypt)
		f.Policy.MaxMemory = 1 << 30
	})
	epoch := w.keys(1)
	w.masks(epoch, 30, "exact", 0, 1)
	k, public := w.key(epoch)
	c := w.encrypt(k, public, want...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	conn := w.connect(devnet.App, 0)
	defer conn.Close()
	service := thresholdv1.NewThresholdServiceClient(conn)

	for name, x := range map[string]struct {
		change func(*thresholdv1.DecryptHeader)
		want   lodge.Code
	}{
		"all numbers at their maximum": {func(h *thresholdv1.DecryptHeader) { h.Count, h.Coefficients = 1<<32-1, 1<<32-1 }, lodge.Invalid},
		"more than any rule allows":    {func(h *thresholdv1.DecryptHeader) { h.Count, h.Coefficients = 1<<32-1, 256 }, "policy_refused"},
		"more than the memory":         {func(h *thresholdv1.DecryptHeader) { h.Count, h.Coefficients = 1<<20, 1 }, "policy_refused"},
		"a quorum of too many":         {func(h *thresholdv1.DecryptHeader) { h.Quorum = make([]uint32, 10000) }, "wrong_quorum"},
		"a quorum without the party":   {func(h *thresholdv1.DecryptHeader) { h.Quorum = []uint32{1<<32 - 2, 1<<32 - 1} }, "wrong_quorum"},
		"a long recipient":             {func(h *thresholdv1.DecryptHeader) { h.Recipient = make([]byte, 1<<16) }, lodge.Invalid},
		"the highest epoch":            {func(h *thresholdv1.DecryptHeader) { h.Epoch = 1<<64 - 1 }, lodge.NotFound},
	} {
		before := allocated()
		_, err := w.raw(ctx, 0, k, c, x.change)
		refused(t, err, x.want, "")
		if grown := allocated() - before; grown > 64<<20 {
			t.Errorf("%s: %d bytes were allocated for it", name, grown)
		}
	}
	stream, err := service.Decrypt(ctx)
	if err == nil {
		_ = stream.CloseSend()
		_, err = stream.Recv()
	}
	refused(t, err, lodge.Invalid, "no header")

	// Calls that have begun and do not continue.
	header := func(count uint32) *thresholdv1.DecryptHeader {
		id := make([]byte, 16)
		rand.Read(id)
		return &thresholdv1.DecryptHeader{
			RequestId: id, Epoch: k.Epoch, KeysDigest: k.Digest[:], Quorum: []uint32{0, 1}, Form: thresholdv1.CiphertextForm_CIPHERTEXT_FORM_RING,
			Count: count, Coefficients: 1, CiphertextsDigest: bytes.Repeat([]byte{1}, 32),
		}
	}
	begin := func(ctx context.Context, h *thresholdv1.DecryptHeader) grpc.BidiStreamingClient[thresholdv1.DecryptRequest, thresholdv1.DecryptResponse] {
		t.Helper()
		stream, err := service.Decrypt(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if h != nil {
			_ = stream.Send(&thresholdv1.DecryptRequest{Header: h, Ciphertexts: []byte{1}})
		}
		return stream
	}
	code := func(h *thresholdv1.DecryptHeader) lodge.Code { // of a call that ends immediately
		stream := begin(ctx, h)
		_ = stream.CloseSend()
		_, err := stream.Recv()
		return lodge.FromError(err).Code
	}
	held, release := context.WithCancel(ctx)
	large := uint32(1 << 15)                       // two calls with most of this size do not fit in memory
	most := func(ctx context.Context) lodge.Code { // of a call that sends three quarters
		stream := begin(ctx, header(large))
		chunk := make([]byte, 1<<20)
		for sent := 0; sent < int(large)*w.scheme().RingSize()*3/4; sent += len(chunk) {
			if stream.Send(&thresholdv1.DecryptRequest{Ciphertexts: chunk}) != nil {
				break
			}
		}
		if ctx == held {
			return ""
		}
		_ = stream.CloseSend()
		_, err := stream.Recv()
		return lodge.FromError(err).Code
	}
	begin(held, header(large))                  // has sent one byte, so it holds almost no memory
	if got := most(ctx); got != lodge.Invalid { // the upload is too short
		t.Errorf("a large call while another has begun: %s", got)
	}
	release()
	held, release = context.WithCancel(ctx)
	w.eventually("a call holds memory for the received bytes", func() bool {
		_ = most(held)
		return most(ctx) == lodge.Busy
	})
	w.eventually("a small call while a large one runs", func() bool { return code(header(1)) == lodge.Invalid })
	release()
	w.eventually("the memory is released", func() bool { return most(ctx) == lodge.Invalid })

	// A stream without a header uses one of the client's places, over all methods together.
	held, release = context.WithCancel(ctx)
	defer release()
	keys := func() error { // to the end: an ended call uses no place
		stream, err := service.GetKeys(ctx, &thresholdv1.GetKeysRequest{Epoch: epoch, Count: 1})
		for err == nil {
			_, err = stream.Recv()
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	w.eventually("the maximum number of streams", func() bool {
		for range 32 {
			begin(held, nil) // streams above the maximum end
		}
		return keys() != nil
	})
	refused(t, keys(), lodge.Busy, "32 streams running")
	_, err = w.raw(ctx, 0, k, c, nil)
	refused(t, err, lodge.Busy, "32 streams running")
	if _, err := service.ListKeys(ctx, &thresholdv1.ListKeysRequest{}); err != nil {
		t.Errorf("a unary call: %v", err)
	}
	if out, err := w.as(devnet.Operator).Decrypt(ctx, k, ring(c, 2, 0, 1)); err != nil || len(out.Messages) != 2 {
		t.Errorf("another client: %v", err)
	}
	release()
	w.eventually("the streams have ended", func() bool { return keys() == nil })
	w.opens(k, ring(w.encrypt(k, public, want...), len(want), 0, 1), want)
}

// allocated returns the total number of bytes that this process has allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
