package byzantine

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	exchangev1 "github.com/lodge-mpc/lodge/proto/lodge/exchange/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
)

// The messages whose every field is attacked.
var (
	helloFields       = new(exchangev1.Hello).ProtoReflect()
	specFields        = new(jobv1.SessionSpec).ProtoReflect()
	reservationFields = new(tuplesv1.Reservation).ProtoReflect()
)

// Attack is an attack outside the protocol's messages: by a peer with streams and connections, or
// by the coordinator with its requests. The tests of this package perform the attacks.
type Attack struct {
	Name string
	Does string
	Ends string // how it must end
}

// onStreams are a peer's. The fields of a hello are attacked one by one.
var onStreams = []Attack{
	{"no-hello", "opens 40 streams and stays silent", "the streams end, and sessions continue meanwhile"},
	{"strange-sessions", "opens 100 streams of sessions that are never started",
		"most are refused at once, and sessions continue meanwhile"},
	{"first-a-frame", "begins a stream with a frame", "the stream is refused"},
	{"drop-by-drop", "sends a hello one byte at a time", "the stream ends, and sessions continue meanwhile"},
	{"length-that-lies", "announces a message of 4 GiB minus one byte", "the stream is refused before anything is allocated"},
	{"zip-bomb", "sends a compressed message that expands 1,000 times", "the stream is refused"},
	{"two-incarnations", "rejoins a session as another process", "check incarnation, which suspects it"},
	{"false-farewell", "ends the session with an unsigned claim that an honest party is to blame",
		"no party blames the honest party"},
	{"nothing-after-hello", "sends a hello and stays silent", "a timeout that suspects it"},
	{"certificate-of-coordinator", "connects with the coordinator's certificate", "forbidden"},
	{"certificate-of-client", "connects with a client's certificate", "forbidden"},
	{"certificate-of-stranger", "connects with its own name in a certificate of another authority", "no connection"},
	{"certificate-swapped", "serves with another party's role in the certificate", "no peer connects"},
	{"roster-swapped", "runs with another roster", "it does not start, or no session with it starts"},
}

// byCoordinator are the coordinator's. The fields of a session's spec and of a reservation are
// attacked one by one.
var byCoordinator = []Attack{
	{"two-names", "starts one session under the name of another", "conflict"},
	{"activates-early", "activates a session that has no result", "conflict"},
	{"activates-another", "activates a session with another digest", "conflict"},
	{"activates-for-one", "activates and reserves a batch only at party 0", "party 0 delivers nothing"},
	{"reserves-twice", "reserves the same tuples under two names", "conflict, and no party delivers them twice"},
	{"reserves-for-one", "reserves only at party 0", "party 0 delivers nothing"},
	{"starts-for-some", "starts a session at all parties but one", "a timeout that suspects the party without a request"},
}

// fields names the fields of a message, so that each is attacked and none is forgotten.
func fields(m protoreflect.Message) (names []string) {
	list := m.Descriptor().Fields()
	for i := range list.Len() {
		names = append(names, string(list.Get(i).Name()))
	}
	return names
}

// attacks lists all, those of fields included.
func attacks() (list []Attack) {
	list = append(list, onStreams...)
	for _, f := range fields(helloFields) {
		list = append(list, Attack{"hello-" + f, "says hello with another " + f,
			"the stream is refused, or the session ends for check pins"})
	}
	list = append(list, byCoordinator...)
	for _, f := range fields(specFields) {
		list = append(list,
			Attack{"spec-" + f, "asks party 0 for a session with another " + f + " than the others",
				"refused, or check pins; nobody has a result"},
			Attack{"bad-spec-" + f, "asks all for a session with a " + f + " that cannot be", "refused by all"})
	}
	for _, f := range fields(reservationFields) {
		list = append(list, Attack{"reservation-" + f, "has party 0 reserve with another " + f + " than the others",
			"no party delivers, unless the change does not affect the reservation"})
	}
	return list
}
