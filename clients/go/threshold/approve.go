package threshold

import (
	"context"
	"encoding/hex"
	"slices"
	"time"

	"google.golang.org/grpc"

	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
)

// Approval is a request for decryption that needs approval at a party, or has received it.
type Approval struct {
	Request    string    `json:"request"` // named by the error approval_needed, in hexadecimal
	Client     string    `json:"client"`
	Epoch      uint64    `json:"epoch"`
	Messages   uint32    `json:"messages"`
	Circuit    string    `json:"circuit,omitempty"`
	ApprovedBy []string  `json:"approved_by"`
	Needed     uint32    `json:"needed"`
	Asked      time.Time `json:"asked"`
	Expires    time.Time `json:"expires"`
	Used       bool      `json:"used"`
}

// Approvals lists each party's requests that need approval; each party keeps its own list. errs
// holds the errors of parties that did not list them.
func (c *Client) Approvals(ctx context.Context) (lists [][]Approval, errs []error) {
	lists = make([][]Approval, c.parties.Len())
	errs = c.parties.Each(func(i int, conn *grpc.ClientConn) error {
		r, err := thresholdv1.NewThresholdServiceClient(conn).ListApprovals(ctx, &thresholdv1.ListApprovalsRequest{})
		for _, a := range r.GetApprovals() {
			lists[i] = append(lists[i], approval(a))
		}
		return err
	})
	return lists, errs
}

// Approve approves another client's request at every party that knows it. errs holds the errors of
// the other parties: not_found if the client has not sent the request to that party.
func (c *Client) Approve(ctx context.Context, request []byte) (at []*Approval, errs []error) {
	at = make([]*Approval, c.parties.Len())
	errs = c.parties.Each(func(i int, conn *grpc.ClientConn) error {
		r, err := thresholdv1.NewThresholdServiceClient(conn).ApproveDecryption(ctx, &thresholdv1.ApproveDecryptionRequest{Request: request})
		if err == nil {
			a := approval(r.GetApproval())
			at[i] = &a
		}
		return err
	})
	return at, errs
}

func approval(a *thresholdv1.Approval) Approval {
	return Approval{
		Request: hex.EncodeToString(a.GetRequest()), Client: a.GetClient(), Epoch: a.GetEpoch(), Messages: a.GetMessages(), Circuit: a.GetCircuit(),
		ApprovedBy: slices.Clone(a.GetApprovedBy()), Needed: a.GetNeeded(), Asked: a.GetAsked().AsTime(), Expires: a.GetExpires().AsTime(), Used: a.GetUsed(),
	}
}

// Parties returns the names of the parties, in the order of the roster.
func (c *Client) Parties() []string { return c.parties.Names() }
