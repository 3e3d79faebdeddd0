package exchange

import (
	"bytes"
	"fmt"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	exchangev1 "github.com/lodge-mpc/lodge/proto/lodge/exchange/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

func init() { SetPoison(true) } // in all tests of the package

// SetPoison lets benchmarks disable poisoning.
func SetPoison(on bool) { poison = on }

func requestOf(f *exchangev1.Frame) *exchangev1.ExchangeRequest {
	return &exchangev1.ExchangeRequest{Kind: &exchangev1.ExchangeRequest_Frame{Frame: f}}
}

// fullFrame returns a frame with every field set.
func fullFrame(data []byte) *exchangev1.Frame {
	return &exchangev1.Frame{
		Seq: 300, Start: &exchangev1.Start{Round: 3, Name: "x", Broadcast: true, Frames: 1}, Data: data,
		End: &exchangev1.End{Digest: make([]byte, 32), Signature: make([]byte, 64)},
	}
}

func encoded(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func field(num protowire.Number, content ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), bytes.Join(content, nil))
}

// chunks returns b in separate buffers, as it arrives from the network.
func chunks(b []byte) (s mem.BufferSlice) {
	const frame = 16 << 10 // of HTTP/2
	for len(b) > 0 {
		n := min(len(b), frame)
		s = append(s, mem.SliceBuffer(bytes.Clone(b[:n])))
		b = b[n:]
	}
	return s
}

// decodeBoth decodes with rpc.Codec and with protobuf, and fails when they differ.
func decodeBoth(t *testing.T, b []byte) (*arrival, error) {
	t.Helper()
	want := new(exchangev1.ExchangeRequest)
	wantErr := proto.Unmarshal(b, want)
	got := &arrival{ExchangeRequest: new(exchangev1.ExchangeRequest)}
	err := rpc.Codec.Unmarshal(chunks(b), got)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%v, protobuf %v", err, wantErr)
	}
	if err == nil && !proto.Equal(got.ExchangeRequest, want) {
		t.Fatal("not the message that protobuf gives")
	}
	return got, err
}

// Unusual encodings are decoded by protobuf.
func TestAliasDecodesTheOrdinary(t *testing.T) {
	data := bytes.Repeat([]byte("data"), leastBuffer/4)
	frame := encoded(t, fullFrame(data))
	unknown := protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 7)
	group := protowire.AppendTag(protowire.AppendTag(nil, 99, protowire.StartGroupType), 99, protowire.EndGroupType)
	huge := func(num protowire.Number, after []byte) []byte {
		return append(protowire.AppendVarint(protowire.AppendTag(nil, num, protowire.BytesType), 1<<62), after...)
	}
	for name, c := range map[string]struct {
		b              []byte
		aliased, fails bool
	}{
		"full":                  {b: field(frameField, frame), aliased: true},
		"of most data":          {b: field(frameField, encoded(t, fullFrame(make([]byte, round.MaxFrame)))), aliased: true},
		"data alone":            {b: field(frameField, field(dataField, data)), aliased: true},
		"data first":            {b: field(frameField, field(dataField, data), encoded(t, fullFrame(nil))), aliased: true},
		"start twice":           {b: field(frameField, encoded(t, fullFrame(nil)), frame), aliased: true},
		"unknown inside":        {b: field(frameField, unknown, frame, group), aliased: true},
		"data of other type":    {b: field(frameField, []byte{dataField << 3, 1}, frame), aliased: true},
		"unknown beside":        {b: append(field(frameField, frame), unknown...)},
		"frame twice":           {b: append(field(frameField, frame), field(frameField, frame)...)},
		"a hello after":         {b: append(field(frameField, frame), field(1)...)},
		"data twice":            {b: field(frameField, frame, field(dataField, data))},
		"empty data, data":      {b: field(frameField, field(dataField), field(dataField, data))},
		"much beside":           {b: field(frameField, frame, field(98, data))},
		"no data":               {b: field(frameField, field(98, data))},
		"name of no text":       {b: field(frameField, frame, field(2, field(2, []byte{0xff}))), fails: true},
		"huge frame length":     {b: huge(frameField, frame), fails: true},
		"huge data length":      {b: field(frameField, huge(dataField, data)), fails: true},
		"data beyond the frame": {b: field(frameField, frame[:len(frame)-200]), fails: true},
		"frame cut short":       {b: field(frameField, frame)[:len(frame)], fails: true},
		"group without start":   {b: field(frameField, frame, group[2:]), fails: true},
		"group without end":     {b: field(frameField, frame, group[:2]), fails: true},
		"field zero":            {b: field(frameField, frame, []byte{0, 0}), fails: true},
		"field beyond the last": {b: field(frameField, frame, field(1<<29)), fails: true},
		"endless length":        {b: append(field(frameField)[:1], bytes.Repeat([]byte{255}, leastBuffer)...), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decodeBoth(t, c.b)
			if (err != nil) != c.fails || (got.buffer != nil) != c.aliased {
				t.Errorf("error %v, aliased %v", err, got.buffer != nil)
			}
			if got.buffer == nil {
				return
			}
			if a := got.GetFrame().Data; cap(a) != len(a) {
				t.Error("the data can be appended to in place")
			}
			putBuffer(got.buffer)
			if got.GetFrame().Data[0] != 0xdb {
				t.Error("the data was copied")
			}
		})
	}
}

// Large frames are sent without a copy: their data stands between the pieces of protobuf's
// encoding.
func TestPiecesShareTheData(t *testing.T) {
	data := make([]byte, leastBuffer)
	for name, f := range map[string]*exchangev1.Frame{
		"full": fullFrame(data), "middle": {Seq: 1, Data: data},
		"first": {Start: &exchangev1.Start{Frames: 2}, Data: data},
	} {
		pieces, err := rpc.Codec.Marshal(departure{requestOf(f)})
		if err != nil || !bytes.Equal(pieces.Materialize(), encoded(t, requestOf(f))) {
			t.Errorf("%s: another encoding, error %v", name, err)
		}
		if len(pieces) < 2 || &pieces[1].ReadOnlyData()[0] != &data[0] {
			t.Errorf("%s: the data was copied", name)
		}
	}
	bad := fullFrame(data)
	bad.Start.Name = "\xff"
	if _, err := rpc.Codec.Marshal(departure{requestOf(bad)}); err == nil {
		t.Error("a name that is not text was encoded")
	}
}

// Any bytes, alone or next to or inside a large frame, decode and encode as with protobuf.
func FuzzCodec(f *testing.F) {
	for _, m := range []*exchangev1.ExchangeRequest{
		{}, requestOf(&exchangev1.Frame{}), requestOf(fullFrame(nil)), requestOf(fullFrame([]byte("data"))),
		{Kind: &exchangev1.ExchangeRequest_Hello{Hello: &exchangev1.Hello{Incarnation: make([]byte, 16)}}},
		{Kind: &exchangev1.ExchangeRequest_Abort{Abort: &exchangev1.Abort{Reason: "because"}}},
	} {
		f.Add(encoded(f, m))
		f.Add(field(frameField, encoded(f, m)))
	}
	f.Add(field(frameField, field(dataField, []byte("a")), field(dataField, []byte("b"))))
	large := field(dataField, make([]byte, leastBuffer))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := new(exchangev1.ExchangeRequest)
		err := proto.Unmarshal(b, m)
		if fr := frameIn(bytes.Clone(b)); fr != nil && (err != nil || !proto.Equal(requestOf(fr), m)) {
			t.Errorf("%v and another error or message than protobuf's, %v", fr, err)
		}
		decodeBoth(t, b)
		decodeBoth(t, append(field(frameField, large), b...))
		decodeBoth(t, field(frameField, b, large))
		decodeBoth(t, field(frameField, large, b))
		if err != nil || m.GetFrame() == nil {
			return
		}
		m.GetFrame().Data = append(m.GetFrame().Data, make([]byte, leastBuffer)...)
		pieces, err := rpc.Codec.Marshal(departure{m})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decodeBoth(t, pieces.Materialize()); err != nil || !proto.Equal(got.ExchangeRequest, m) {
			t.Errorf("encoded as another message, error %v", err)
		}
	})
}

// Buffers are used again, by one user at a time, for frames of about the same size.
func TestBuffers(t *testing.T) {
	again := 0
	for range 100 { // the pool may lose some
		a := getBuffer(leastBuffer + 1)
		if len(a) != leastBuffer+1 || cap(a) != leastBuffer+bufferStep {
			t.Fatalf("%d bytes of %d", len(a), cap(a))
		}
		putBuffer(a[:1])
		b, c, d := getBuffer(leastBuffer+bufferStep), getBuffer(leastBuffer+2), getBuffer(leastBuffer)
		if &b[0] == &c[0] || &d[0] == &a[0] {
			t.Fatal("two users of a buffer")
		}
		if &b[0] == &a[0] {
			again++
		}
	}
	if again == 0 {
		t.Error("no buffer is used again")
	}
	if largest := getBuffer(largestFrame); len(largest) != largestFrame {
		t.Error("no buffer for the largest frame")
	}
	over := field(frameField, field(dataField, make([]byte, largestFrame)))
	if got, err := decodeBoth(t, over); err != nil || got.buffer != nil {
		t.Errorf("a frame that is too large lies in a buffer, or fails: %v", err)
	}
}

// Receive returns the data of the previous frame to the pool once. The end of the session does not.
func TestReceiveTakesDataBack(t *testing.T) {
	s := fuzzSession([32]byte{}, Pins{})
	s.cancel = func() {}
	s.in, s.out = []*inbox{{}, {}}, []*outbox{{}, {}}
	for i := range 3 {
		b := getBuffer(leastBuffer)
		b[0] = byte(i)
		s.in[1].queue = append(s.in[1].queue, &Frame{From: 1, Data: b, buffer: b})
	}
	all := func(round.Party) bool { return true }
	receive := func() *Frame {
		f, err := s.Receive(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	first := receive()
	if first.Data[0] != 0 {
		t.Fatal("taken back too early")
	}
	second := receive()
	if first.Data[0] != 0xdb || second.Data[0] != 1 {
		t.Fatal("not taken back")
	}
	third := receive()
	s.close(finished, nil)
	if _, err := s.Receive(t.Context(), all); err == nil {
		t.Fatal("received after the end")
	}
	if second.Data[0] != 0xdb || third.Data[0] != 2 || s.lent != nil {
		t.Error("the end took a frame away that may be in use")
	}
}

// This benchmark decodes a frame of 866 kB, the usual size in a batch, from the network's buffers
// and releases it.
func BenchmarkDecode(b *testing.B) {
	came := chunks(encoded(b, requestOf(fullFrame(make([]byte, 866_000)))))
	SetPoison(false)
	defer SetPoison(true)
	for _, aliased := range []bool{false, true} {
		b.Run(fmt.Sprintf("aliased=%v", aliased), func(b *testing.B) {
			b.SetBytes(int64(came.Len()))
			b.ReportAllocs()
			for b.Loop() {
				a := &arrival{ExchangeRequest: new(exchangev1.ExchangeRequest)}
				var m any = a
				if !aliased {
					m = a.ExchangeRequest
				}
				if err := rpc.Codec.Unmarshal(came, m); err != nil {
					b.Fatal(err)
				}
				if aliased {
					putBuffer(a.buffer)
				}
			}
		})
	}
}
