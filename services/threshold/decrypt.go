package threshold

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/decrypt"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/share"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/session/exchange"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/session/runner"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const (
	uploadTime = 2 * time.Minute
	callTime   = 2 * time.Minute
	answerPart = 1 << 20 // bytes of an answer in one response
)

// Decrypt implements the service.
func (s *Service) Decrypt(stream thresholdv1.ThresholdService_DecryptServer) error {
	err := s.decrypt(stream)
	if err != nil {
		s.Sessions.Metrics.Count(metrics.Decryptions, 1, string(rpc.FromError(err).Code))
	}
	return err
}

func (s *Service) decrypt(stream thresholdv1.ThresholdService_DecryptServer) error {
	caller, _ := rpc.Caller(stream.Context())
	q, err := rpc.Receive(uploadTime, func() (*upload, error) { return receive(stream) }, func(m *upload) (*request, error) {
		q, err := s.open(m.GetHeader(), caller)
		if err == nil {
			q.intake = q.intakeOf()
			q.call, err = s.Sessions.Gate.AdmitCall(caller.Name, q.room())
		}
		if err != nil {
			m.release()
		}
		return q, err
	}, func(q *request, m *upload) error {
		defer m.release()
		// Memory is charged only for the part that was received.
		if err := q.call.Take(q.roomOf(len(m.GetCiphertexts()))); err != nil {
			return err
		}
		return q.add(m.GetCiphertexts())
	})
	defer q.close()
	if err != nil {
		return err
	}
	if err := q.check(q.header.GetCiphertextsDigest()); err != nil {
		return err
	}
	if err := q.call.Compute(); err != nil {
		return err
	}
	// A decryption spends masks and budgets, and no answer leaves before it is in the audit log.
	release, err := s.Audit.Hold(q.entry("decrypted"))
	//lodge:check threshold/audit-room/decryption [run=TestFullAuditDisk] a full audit disk uses up masks and budgets without an answer
	if err != nil {
		return err
	}
	defer release()
	give := s.answer
	if q.flooding() {
		give = s.flood
	}
	answer, err := give(stream.Context(), q)
	if err != nil {
		return err
	}
	for chunk := range slices.Chunk(answer, answerPart) {
		if err := stream.Send(&thresholdv1.DecryptResponse{Party: uint32(s.Sessions.Self), Chunk: chunk}); err != nil {
			return err
		}
	}
	return nil
}

// answer returns this party's parts of the plaintexts: parts that it has given before, and for the
// others the result of a run with the quorum. The parts are durable before they leave.
func (s *Service) answer(ctx context.Context, q *request) ([]byte, error) {
	held, err := s.answered(q)
	if err != nil {
		return nil, err
	}
	if !q.answers(held) {
		if err := s.approved(q); err != nil { // before other parties receive the request
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	r := &run{Service: s, request: q, held: held}
	defer r.wipe()
	out, err := r.drive(ctx)
	if err != nil && r.why != nil {
		return nil, r.why
	}
	if err != nil {
		return nil, refusal(err)
	}
	defer decrypt.Wipe(out)
	if err := s.record(q, r, out); err != nil {
		return nil, err
	}
	answer, err := decrypt.EncodeAnswer(q.params, out)
	if err != nil {
		return nil, rpc.Errorf(rpc.TooLarge, "request fewer at a time", "%v", err)
	}
	return s.seal(q, answer)
}

// answered looks up this party's earlier answers, and returns an error if one went to another
// client or recipient.
func (s *Service) answered(q *request) ([][]ledger.Answer, error) {
	held, err := s.Vault.ThresholdAnswers(q.epoch.ID, q.quorum, q.all())
	if err != nil {
		return nil, vaulterr.RPC(err, fmt.Sprintf("epoch %d", q.epoch.ID))
	}
	for i, list := range held {
		for _, a := range list {
			//lodge:check threshold/ledger/client [run=TestRepeats] an answer goes to another client
			//  or recipient
			if a.Client != q.recipients {
				return nil, rpc.Errorf(rpc.Delivered, "a ciphertext is decrypted by a quorum for only one client and recipient",
					"message %d was decrypted for another client or recipient", i*q.batch.each()+a.First)
			}
		}
	}
	return held, nil
}

// answers reports whether the recorded answers cover the whole request.
func (q *request) answers(held [][]ledger.Answer) bool {
	n := 0
	for _, list := range held {
		for _, a := range list {
			if len(a.Bytes) == a.Count*wordBytes {
				n += a.Count
			}
		}
	}
	return n == q.messages()
}

// run is this party's part of the decryption of a request.
type run struct {
	*Service
	*request
	held   [][]ledger.Answer // for each ciphertext
	secret share.Vec
	id     decrypt.RunID
	fresh  []int      // indices of the messages that are decrypted in this run
	spent  bool       // masks are spent, or about to be
	why    *rpc.Error // this party's own reason to end the run
}

// refuse ends the run for this party's own reason.
func (r *run) refuse(why *rpc.Error) (round.Transition[*decrypt.Result], error) {
	r.why = why
	return round.Transition[*decrypt.Result]{}, session.Refuse(why)
}

// fail ends the run with this party's own error, and reports the reason unless the error is
// internal.
func (r *run) fail(err error) (round.Transition[*decrypt.Result], error) {
	if known := rpc.FromError(err); known.Code != rpc.Internal {
		return r.refuse(known)
	}
	return round.Transition[*decrypt.Result]{}, err
}

func (r *run) wipe() {
	r.secret.Wipe()
	for _, list := range r.held {
		for _, a := range list {
			clear(a.Bytes)
		}
	}
}

// drive runs the protocol with the quorum.
func (r *run) drive(ctx context.Context) ([]decrypt.Part, error) {
	offer := decrypt.Offer{Held: make([]decrypt.RunID, r.messages())}
	r.eachHeld(func(message int, of decrypt.RunID, _ []byte) { offer.Held[message] = of })
	if r.header.GetQuorum()[0] == uint32(r.Sessions.Self) {
		var release func()
		var err error
		if offer.Records, release, err = r.offer(&r.epoch, r.quorum, r.form(), r.messages()); err != nil {
			return nil, err
		}
		defer release()
	}
	result, err := session.Join(ctx, r.Sessions, session.Call{
		Ref: job.Ref{JobID: fmt.Sprintf("d%x", r.header.GetRequestId()), Ordinal: 1}, Digest: r.asked.Digest(), Group: r.header.GetQuorum(),
		Protocol: plan.Threshold, Params: terms("decryption", r.scheme, r.epoch.Digest), Epoch: r.epoch.ID,
	}, func(rs round.Session, _ *sample.Source) (round.Transition[*decrypt.Result], error) {
		r.id = decrypt.RunID(rs.ID[:16])
		t, err := decrypt.Agree(rs, "agree", offer)
		if err != nil {
			return round.Transition[*decrypt.Result]{}, err
		}
		return round.Then(t, func(_ context.Context, terms decrypt.Terms) (round.Transition[*decrypt.Result], error) {
			return r.begin(rs, terms)
		}), nil
	})
	if err != nil {
		r.drop(offer.Records, err)
		return nil, err
	}
	defer result.Wipe()
	return r.parts(result)
}

// eachHeld calls f with each message for which this party holds an answer, and with the answer's
// run.
func (r *run) eachHeld(f func(message int, of decrypt.RunID, answer []byte)) {
	for i, list := range r.held {
		for _, a := range list {
			if len(a.Bytes) != a.Count*wordBytes {
				continue
			}
			for k := range a.Count {
				f(i*r.batch.each()+a.First+k, decrypt.RunID(a.Run), a.Bytes[k*wordBytes:(k+1)*wordBytes])
			}
		}
	}
}

// additive returns this party's additive share of the key among the quorum, in the first parts
// moduli. The caller must wipe it.
func (s *Service) additive(q *request, parts int) ([]share.Vec, error) {
	of := q.scheme.parts()[:parts]
	list, err := s.readShares(q.epoch.ID, of)
	if err != nil {
		return nil, err
	}
	self, quorum := 0, make([]int, len(q.quorum))
	places := s.Vault.Places(&q.epoch)
	for i, n := range q.quorum {
		quorum[i] = int(n)
		if places[n] == int(s.Sessions.Self) {
			self = int(n)
		}
	}
	for i, v := range list {
		shamir, err := s.shamirOf(of[i].q, len(q.epoch.Members))
		if err != nil {
			wipe(list)
			return nil, err
		}
		shamir.Additive(v, quorum, self, v)
	}
	return list, nil
}

// keyShare returns the share by which this party multiplies ciphertexts. The caller must wipe it.
func (r *run) keyShare() (share.Vec, error) {
	if c, own := r.batch.(*multikeyCiphertexts); own {
		return r.ownShare(r.request, c)
	}
	parts, err := r.additive(r.request, 1)
	if err != nil {
		return nil, err
	}
	return parts[0], nil
}

// begin spends masks for the messages that are not answered by all parties, and decrypts them.
// Masks that a party has spent stay spent, whatever follows.
func (r *run) begin(rs round.Session, t decrypt.Terms) (round.Transition[*decrypt.Result], error) {
	for i, again := range t.Again {
		if !again {
			r.fresh = append(r.fresh, i)
		}
	}
	if len(r.fresh) == 0 {
		return round.Done(&decrypt.Result{}), nil
	}
	take := t.Take()
	if take == nil {
		return r.refuse(r.short(t))
	}
	if err := r.allowed(); err != nil {
		return r.refuse(rpc.FromError(err))
	}
	var err error
	if r.secret, err = r.keyShare(); err != nil {
		return r.fail(err)
	}
	r.spent = true
	batch, err := r.spend(take)
	if err != nil {
		return r.fail(err)
	}
	return decrypt.Start(decrypt.Config{
		Session: rs, Step: "decrypt", Chosen: t.Digest(), Params: r.params, Ciphertexts: chosen{r.request, r.fresh}, Secret: r.secret, Masks: batch,
		Recipient: decrypt.Outside, Workers: r.Workers,
	})
}

// allowed checks approvals, the hourly rate and the total of the rule before messages are decrypted
// for the first time, or again because a party has lost its answer. The total is durable, so it is
// counted last.
func (r *run) allowed() error {
	if err := r.approved(r.request); err != nil {
		return err
	}
	if err := r.rates.take(r.caller.Name, len(r.fresh), r.rule.MessagesPerHour, time.Now()); err != nil {
		return err
	}
	//lodge:check threshold/total [run=TestTotalAcrossReshare] a client has more decrypted under a key than its rule's total
	if err := r.spendBudget(r.request, len(r.fresh)); err != nil {
		return err
	}
	return nil
}

func sameQuorum(a, b []uint32) bool { return string(quorumBytes(a)) == string(quorumBytes(b)) }

// parts combines the recorded answers with the result of the run.
func (r *run) parts(result *decrypt.Result) ([]decrypt.Part, error) {
	out := make([]decrypt.Part, r.messages())
	r.eachHeld(func(message int, of decrypt.RunID, answer []byte) {
		out[message] = decrypt.Part{Run: of, Word: getWord(answer)}
	})
	if len(r.fresh) == 0 {
		return out, nil
	}
	_, words, err := decrypt.Values(r.params, len(r.fresh), result.Answer)
	if err != nil {
		return nil, err
	}
	defer clear(words)
	for k, i := range r.fresh {
		out[i] = decrypt.Part{Run: r.id, Word: words[k]}
	}
	return out, nil
}

// record makes the answers of a run durable, and notes them in the audit log.
func (s *Service) record(q *request, r *run, out []decrypt.Part) error {
	outcome := "repeated"
	if len(r.fresh) > 0 {
		outcome = "answered"
		t := ledger.ThresholdRun{Epoch: q.epoch.ID, Quorum: q.quorum, Run: r.id, Client: q.recipients, AnswerBytes: wordBytes}
		t.Messages, t.Answers = q.some(r.fresh), make([]byte, 0, len(r.fresh)*wordBytes)
		for _, i := range r.fresh {
			t.Answers = putWord(t.Answers, out[i].Word)
		}
		defer clear(t.Answers)
		if err := s.Vault.RecordThreshold(t, s.approval(q)...); err != nil {
			return vaulterr.RPC(err, "this decryption")
		}
	}
	s.Sessions.Metrics.Count(metrics.Decryptions, 1, outcome)
	s.Sessions.Metrics.Count(metrics.Threshold, len(r.fresh), job.FormName(q.form()))
	if c, own := q.batch.(*multikeyCiphertexts); own && len(r.fresh) > 0 {
		s.Sessions.Metrics.Count(metrics.MultikeyDecrypted, len(r.fresh), strconv.Itoa(len(c.keys)))
	}
	if q.rule.AnyCiphertexts {
		s.Sessions.Metrics.Count(metrics.AnyCiphertexts, len(r.fresh))
	}
	note := fmt.Sprintf("%s: %d messages, %d of them for the first time, %d parties", outcome, q.messages(), len(r.fresh), len(q.quorum))
	return s.note(q, note)
}

// refusal translates the failure of a run for the client.
func refusal(err error) error {
	var f *runner.Failure
	if !errors.As(err, &f) {
		return err
	}
	who := make([]string, len(f.Suspects))
	for i, p := range f.Suspects {
		who[i] = fmt.Sprint(p)
	}
	parties := "party " + strings.Join(who, ", ")
	switch {
	case f.Outcome == session.Refused || f.Outcome == runner.PeerAbort && known(f.Check):
		return rpc.Errorf(rpc.Code(f.Check), "", "%s", f.Reason)
	case f.Check == exchange.CheckPins:
		return rpc.Errorf(rpc.PinMismatch, "send the same request with the same request id to all parties of the quorum", "the parties received different requests: %s", f.Reason)
	case f.Outcome == runner.Blamed:
		return rpc.Errorf(rpc.Unavailable, "use another quorum, and tell the operators", "party %d deviates from the protocol (%s): %s", f.Party, f.Check, f.Reason)
	case f.Outcome == runner.Cancelled:
		return rpc.Errorf(rpc.Cancelled, "", "%s", f.Reason)
	case f.Outcome == runner.Internal:
		return rpc.Errorf(rpc.Internal, "", "%s", f.Reason)
	case len(who) > 0:
		return rpc.Errorf(rpc.Unavailable, "check that it runs and received the request, or use another quorum", "%s of the quorum: %s", parties, f.Reason)
	}
	return rpc.Errorf(rpc.Unavailable, "repeat the request, or use another quorum", "%s", f.Reason)
}

// known reports whether the check of a peer's refusal is meant for the client.
func known(check string) bool {
	switch rpc.Code(check) {
	case rpc.MaskSpent, rpc.OutOfStock, rpc.WrongQuorum, rpc.Burnt, rpc.Conflict, rpc.Quarantined, rpc.Busy:
		return true
	}
	return false
}
