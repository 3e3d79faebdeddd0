package evidence

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	evidencev1 "github.com/lodge-mpc/lodge/proto/lodge/evidence/v1"
)

// magic is the beginning of every file.
const magic = "lodge accusation 1\n"

// Bounds on the parts of a file. Proofs of keys have the most frame digests, and rosters of 64
// parties have the longest histories.
const (
	maxStatement = 4 << 20 // bytes
	maxName      = 256     // bytes of a message's name, more than the exchange accepts
)

func problem(p Problem, format string, args ...any) *Error {
	e := &Error{Problem: p, Reason: fmt.Sprintf(format, args...)}
	for _, a := range args {
		if cause, ok := a.(error); ok {
			e.Cause = cause
		}
	}
	return e
}

func unreadable(format string, args ...any) *Error { return problem(Unreadable, format, args...) }
func unproven(format string, args ...any) *Error   { return problem(Unproven, format, args...) }

// block reads one block of at most limit bytes into room, which it extends if necessary.
func block(in io.Reader, room []byte, limit int) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(in, size[:]); err != nil {
		return nil, truncated(err)
	}
	n := binary.LittleEndian.Uint32(size[:])
	//lodge:check evidence/file/block [run=TestReferee] one block of a file takes any amount of
	//  memory
	if n > uint32(limit) {
		return nil, unreadable("a block of %d bytes; at most %d", n, limit)
	}
	if int(n) > cap(room) {
		room = make([]byte, n)
	}
	room = room[:n]
	if _, err := io.ReadFull(in, room); err != nil {
		return nil, truncated(err)
	}
	return room, nil
}

// truncated returns the error for a file that ends early, or an error of the reader.
func truncated(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return unreadable("the file is truncated")
	}
	return fmt.Errorf("evidence: reading: %w", err)
}

// writeBlock is the inverse of block.
func writeBlock(out io.Writer, b []byte) error {
	var size [4]byte
	binary.LittleEndian.PutUint32(size[:], uint32(len(b)))
	if _, err := out.Write(size[:]); err != nil {
		return err
	}
	_, err := out.Write(b)
	return err
}

// canonical produces the one valid encoding of a message of this package. known decodes a message
// without its unknown fields.
var (
	canonical = proto.MarshalOptions{Deterministic: true}
	//lodge:check evidence/file/no-unknown [swap=true=>false] [run=TestOneEncoding] one cheat can be
	//  filed many times with unknown fields
	known = proto.UnmarshalOptions{DiscardUnknown: true}
)

// maxFields bounds the number of fields of a statement, including those of its parts: a decoded
// field needs many times the memory of its encoding.
const maxFields = 1 << 16

// fields counts the fields of an encoded message and, recursively up to depth, of parts that may be
// messages. It stops counting above most.
func fields(b []byte, most, depth int) (n int, ok bool) {
	for len(b) > 0 && n <= most {
		number, kind, size := protowire.ConsumeTag(b)
		if size < 0 {
			return n, false
		}
		value := protowire.ConsumeFieldValue(number, kind, b[size:])
		if value < 0 {
			return n, false
		}
		if n++; kind == protowire.BytesType && depth > 0 {
			part, _ := protowire.ConsumeBytes(b[size:])
			if inner, message := fields(part, most-n, depth-1); message {
				n += inner
			}
		}
		b = b[size+value:]
	}
	return n, true
}

// decode decodes a message and rejects all but its one valid encoding.
func decode(b []byte, to proto.Message) error {
	//lodge:check evidence/file/fields [drop=n > maxFields] [run=TestFields] a statement with many
	//  fields takes any amount of memory
	//lodge:check evidence/file/inner-fields [swap=3=>0] [run=TestFields] nested fields of a
	//  statement are not counted
	if n, ok := fields(b, maxFields, 3); !ok || n > maxFields {
		return unreadable("not an accusation, or one of more than %d fields", maxFields)
	}
	if err := known.Unmarshal(b, to); err != nil {
		return unreadable("not an accusation: %v", err)
	}
	again, err := canonical.Marshal(to)
	//lodge:check evidence/file/one-encoding [drop=!bytes.Equal(again, b)] [run=TestOneEncoding] one
	//  cheat can be filed many times in different encodings
	if err != nil || !bytes.Equal(again, b) {
		return unreadable("the encoding of the accusation is not canonical")
	}
	return nil
}

// head reads the statement and verifies the accuser's signature.
func head(in io.Reader, who Members) (*evidencev1.Statement, error) {
	first := make([]byte, len(magic))
	if _, err := io.ReadFull(in, first); err != nil {
		return nil, truncated(err)
	}
	//lodge:check evidence/file/magic [run=TestLimitsOfWhoIsAccused] a file of another version is
	//  read
	if string(first) != magic {
		if bytes.HasPrefix(first, []byte("lodge accusation ")) {
			return nil, problem(OtherVersion, "the file has another version than this program supports")
		}
		return nil, unreadable("not an accusation")
	}
	b, err := block(in, nil, maxStatement)
	if err != nil {
		return nil, err
	}
	accusation, st := new(evidencev1.Accusation), new(evidencev1.Statement)
	if err := decode(b, accusation); err != nil {
		return nil, err
	}
	if err := decode(accusation.GetStatement(), st); err != nil {
		return nil, err
	}
	switch hash := st.GetSpec().GetRosterHash(); {
	//lodge:check evidence/file/roster [run=TestOneEncoding] a file about another roster is accepted
	case !bytes.Equal(hash, who.Hash[:]):
		return nil, problem(OtherRoster, "the session's parties are those of roster %.8x, not of %.8x", hash, who.Hash[:])
	//lodge:check evidence/file/accuser [drop=int64(st.GetAccuser()) >= int64(len(who.Keys))]
	//  [run=TestLimitsOfWhoIsAccused] an accuser outside the roster crashes the judge
	//lodge:check evidence/file/culprit [drop=int64(st.GetCulprit()) >= int64(len(who.Keys))]
	//  [run=TestLimitsOfWhoIsAccused] [redundant=the first message is the culprit's, and every
	//  sender is checked against the roster] a culprit outside the roster crashes the judge
	case int64(st.GetAccuser()) >= int64(len(who.Keys)) || int64(st.GetCulprit()) >= int64(len(who.Keys)):
		return nil, unreadable("the roster does not have this party")
	//lodge:check evidence/file/self [run=TestLimitsOfWhoIsAccused] a party is convicted by its own
	//  accusation
	case st.GetAccuser() == st.GetCulprit():
		return nil, unproven("a party accuses itself")
	//lodge:check evidence/file/signature [run=TestLimitsOfWhoIsAccused] a file need not be signed
	//  by its accuser
	case !verifyStatement(who.Keys[st.GetAccuser()], accusation):
		return nil, unreadable("the accuser's signature does not verify")
	case st.GetWhen().CheckValid() != nil:
		return nil, unreadable("no time")
	}
	return st, nil
}

// signedStatement returns the bytes that an accuser signs.
func signedStatement(statement []byte) []byte {
	h := round.Hash("lodge accusation", statement)
	return append([]byte("lodge accusation v1:"), h[:]...)
}

func verifyStatement(key ed25519.PublicKey, a *evidencev1.Accusation) bool {
	return len(a.GetSignature()) == ed25519.SignatureSize && ed25519.Verify(key, signedStatement(a.GetStatement()), a.GetSignature())
}

// digests decodes a list of digests.
func digests(b []byte) ([]round.Digest, error) {
	const size = len(round.Digest{})
	//lodge:check evidence/file/digests [run=TestReferee] a list of digests can have trailing bytes
	if len(b)%size != 0 {
		return nil, unreadable("a list of digests has %d bytes", len(b))
	}
	list := make([]round.Digest, len(b)/size)
	for i := range list {
		copy(list[i][:], b[i*size:])
	}
	return list, nil
}

// listed is the inverse of digests.
func listed(list []round.Digest) []byte {
	out := make([]byte, 0, len(list)*len(round.Digest{}))
	for _, d := range list {
		out = append(out, d[:]...)
	}
	return out
}
