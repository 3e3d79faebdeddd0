package threshold

import (
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// spendBudget durably counts n messages against the total of the request's rule before they are
// decrypted. A message whose run fails afterwards stays counted.
func (s *Service) spendBudget(q *request, n int) error {
	if q.rule.MaxTotal == 0 || n == 0 {
		return nil
	}
	total, err := s.Vault.SpendBudget(q.caller.Name, s.budgetKeys(q), uint64(n), q.rule.MaxTotal)
	var spent *ledger.BudgetError
	switch {
	case errors.As(err, &spent) && spent.FromABackup:
		return rpc.Errorf(rpc.Burnt, "make other keys, or have attesters vouch for the ciphertexts: a rule with provenance and without max_total has no budget",
			"this party's store was restored from a backup, so the total of client %s under keys %.8x counts as used up", q.caller.Name, spent.Key)
	case errors.As(err, &spent):
		return rpc.Errorf(rpc.Burnt, "the party's operator can raise max_total of the rule, or require provenance or approvals instead",
			"client %s has had %d messages decrypted under keys %.8x, and its total is %d: %d more do not fit", q.caller.Name, spent.Spent, spent.Key, spent.Most, spent.Wanted)
	case err != nil:
		return vaulterr.RPC(err, "this decryption")
	}
	q.spent = total
	return nil
}

// budgetKeys returns the identifiers of the keys under which a request's messages are counted: the
// digest of threshold keys, which all epochs of the same keys share, or this party's own multi-key
// keys. A party that decrypts but owns none of the ciphertexts' keys counts under the group's
// digest.
func (s *Service) budgetKeys(q *request) [][32]byte {
	var own [][32]byte
	if c, multi := q.batch.(*multikeyCiphertexts); multi {
		for i, id := range c.keys {
			if q.header.GetMultikey()[i].GetOwner() == uint32(s.Sessions.Self) {
				own = append(own, id)
			}
		}
	}
	if len(own) == 0 {
		own = append(own, q.epoch.Digest)
	}
	return own
}

// note appends a decryption to the audit log: who vouched for the ciphertexts, if anyone, and how
// much of a total is used.
func (s *Service) note(q *request, note string) error {
	if q.attester != "" {
		note += fmt.Sprintf(", circuit %q by %s", q.circuit, q.attester)
	}
	if q.rule.AnyCiphertexts {
		note += ", any_ciphertexts: this client can read the key"
	}
	if q.spent > 0 {
		note += fmt.Sprintf(", %d of %d messages of its total", q.spent, q.rule.MaxTotal)
	}
	_, err := s.Audit.Append(q.entry(note))
	return err
}

// entry returns the audit log's entry for a decryption.
func (q *request) entry(note string) audit.Entry {
	return audit.Entry{Event: audit.Decrypted, Actor: q.caller.Name, Auth: audit.Auth(q.caller.Auth), Digest: [32]byte(q.header.GetCiphertextsDigest()),
		Note: note, Objects: []string{fmt.Sprintf("epoch/%d", q.epoch.ID)}}
}
