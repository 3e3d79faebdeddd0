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
	"github.com/lodge-mpc/lodge/services/rpc"
)

func init() { SetPoison(true) } // in all tests of the package

// SetPoison is for benchmarks to end it.
func SetPoison(on bool) { poison = on }

func requestOf(f *exchangev1.Frame) *exchangev1.ExchangeRequest {
	return &exchangev1.ExchangeRequest{Kind: &exchangev1.ExchangeRequest_Frame{Frame: f}}
}

// fullFrame has every field.
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

// chunks is b as it comes from the network, in buffers that nobody else has.
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
	got := &arrival{ExchangeRequest: new(exchangev1.ExchangeRequest), pool: new(pool)}
	err := rpc.Codec.Unmarshal(chunks(b), got)
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%v, protobuf %v", err, wantErr)
	}
	if err == nil && !proto.Equal(got.ExchangeRequest, want) {
		t.Fatal("not the message that protobuf gives")
	}
	return got, err
}

// What is out of the ordinary is left to protobuf.
func TestAliasDecodesTheOrdinary(t *testing.T) {
	data := bytes.Repeat([]byte("data"), largeFrame/4)
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
		"full":                        {b: field(frameField, frame), aliased: true},
		"data alone":                  {b: field(frameField, field(dataField, data)), aliased: true},
		"data first":                  {b: field(frameField, field(dataField, data), encoded(t, fullFrame(nil))), aliased: true},
		"start twice":                 {b: field(frameField, encoded(t, fullFrame(nil)), frame), aliased: true},
		"unknown in the frame":        {b: field(frameField, unknown, frame, group), aliased: true},
		"data of another type":        {b: field(frameField, []byte{dataField << 3, 1}, frame), aliased: true},
		"unknown beside":              {b: append(field(frameField, frame), unknown...)},
		"frame twice":                 {b: append(field(frameField, frame), field(frameField, frame)...)},
		"a hello after":               {b: append(field(frameField, frame), field(1)...)},
		"data twice":                  {b: field(frameField, frame, field(dataField, data))},
		"empty data, then data":       {b: field(frameField, field(dataField), field(dataField, data))},
		"much beside":                 {b: field(frameField, frame, field(98, data))},
		"no data":                     {b: field(frameField, field(98, data))},
		"a name that is not text":     {b: field(frameField, frame, field(2, field(2, []byte{0xff}))), fails: true},
		"huge length of the frame":    {b: huge(frameField, frame), fails: true},
		"huge length of the data":     {b: field(frameField, huge(dataField, data)), fails: true},
		"data longer than the frame":  {b: field(frameField, frame[:len(frame)-200]), fails: true},
		"frame longer than it is":     {b: field(frameField, frame)[:len(frame)], fails: true},
		"group that ends before":      {b: field(frameField, frame, group[2:]), fails: true},
		"group that does not end":     {b: field(frameField, frame, group[:2]), fails: true},
		"field zero":                  {b: field(frameField, frame, []byte{0, 0}), fails: true},
		"field beyond the last":       {b: field(frameField, frame, field(1<<29)), fails: true},
		"length of more than 64 bits": {b: append([]byte{frameField<<3 | 2}, bytes.Repeat([]byte{0xff}, largeFrame)...), fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decodeBoth(t, c.b)
			if (err != nil) != c.fails || (got.buffer != nil) != c.aliased {
				t.Errorf("error %v, aliased %v", err, got.buffer != nil)
			}
			if got.buffer == nil {
				return
			}
			if a := got.GetFrame().Data; cap(a) != len(a) || !bytes.Contains(got.buffer, a) {
				t.Error("the data can be appended to in place")
			}
			got.pool.put(got.buffer)
			if got.GetFrame().Data[0] != 0xdb {
				t.Error("the data was copied")
			}
		})
	}
}

// Large frames go out as their own data between the pieces of protobuf's encoding.
func TestPiecesShareTheData(t *testing.T) {
	data := make([]byte, largeFrame)
	for name, f := range map[string]*exchangev1.Frame{
		"full": fullFrame(data), "middle": {Seq: 1, Data: data}, "first": {Start: &exchangev1.Start{Frames: 2}, Data: data},
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

// Any bytes, alone or with a large frame behind or around them, decode as with protobuf, and encode again so.
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
	large := field(dataField, make([]byte, largeFrame))
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
		m.GetFrame().Data = append(m.GetFrame().Data, make([]byte, largeFrame)...)
		pieces, err := rpc.Codec.Marshal(departure{m})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decodeBoth(t, pieces.Materialize()); err != nil || !proto.Equal(got.ExchangeRequest, m) {
			t.Errorf("encoded as another message, error %v", err)
		}
	})
}

func TestPool(t *testing.T) {
	p := new(pool)
	a := p.get(poolStep + 1)
	if len(a) != poolStep+1 || cap(a) != 2*poolStep {
		t.Fatalf("%d bytes of %d", len(a), cap(a))
	}
	p.put(a[:1])
	if b := p.get(poolStep); &b[0] == &a[0] {
		t.Error("a buffer of another capacity")
	}
	b, c := p.get(2*poolStep), p.get(2*poolStep)
	if &b[0] != &a[0] || &c[0] == &a[0] {
		t.Error("a buffer comes back once")
	}
	const larger = 1 << 20
	for range 2 * poolBytes / larger {
		p.put(make([]byte, larger))
	}
	if p.put(c); len(p.free) != poolBytes/larger || p.bytes != poolBytes-larger+2*poolStep {
		t.Errorf("%d buffers of %d bytes are kept", len(p.free), p.bytes)
	}
	if d := p.get(2 * poolStep); &d[0] != &c[0] {
		t.Error("the latest buffer was not kept")
	}
	if p.empty(); p.bytes != 0 || len(p.free) != 0 {
		t.Error("not empty")
	}
}

// Receive takes the data of the frame before back, once, and the session's end does not.
func TestReceiveTakesDataBack(t *testing.T) {
	s := fuzzSession([32]byte{}, Pins{})
	s.cancel = func() {}
	s.in, s.out = []*inbox{{}, {}}, []*outbox{{}, {}}
	for i := range 3 {
		b := s.x.pool.get(largeFrame)
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
	if first.Data[0] != 0 || len(s.x.pool.free) != 0 {
		t.Fatal("taken back too early")
	}
	second := receive()
	if first.Data[0] != 0xdb || second.Data[0] != 1 || len(s.x.pool.free) != 1 {
		t.Fatal("not taken back")
	}
	third := receive()
	s.close(finished, nil)
	if _, err := s.Receive(t.Context(), all); err == nil {
		t.Fatal("received after the end")
	}
	if second.Data[0] != 0xdb || third.Data[0] != 2 || len(s.x.pool.free) != 2 || s.lent != nil {
		t.Error("the end took a frame away that may be in use")
	}
}

// A frame of 866 kB, as most of a batch have, from the network's buffers to the end of its use.
func BenchmarkDecode(b *testing.B) {
	came := chunks(encoded(b, requestOf(fullFrame(make([]byte, 866_000)))))
	p := new(pool)
	SetPoison(false)
	defer SetPoison(true)
	for _, aliased := range []bool{false, true} {
		b.Run(fmt.Sprintf("aliased=%v", aliased), func(b *testing.B) {
			b.SetBytes(int64(came.Len()))
			b.ReportAllocs()
			for b.Loop() {
				a := &arrival{ExchangeRequest: new(exchangev1.ExchangeRequest), pool: p}
				var m any = a
				if !aliased {
					m = a.ExchangeRequest
				}
				if err := rpc.Codec.Unmarshal(came, m); err != nil {
					b.Fatal(err)
				}
				if aliased {
					p.put(a.buffer)
				}
			}
		})
	}
}
