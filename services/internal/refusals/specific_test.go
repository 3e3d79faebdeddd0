package refusals

import (
	"context"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// complete runs a job to its end.
func complete(ctx context.Context, t *testing.T, c coordinatorv1.CoordinatorServiceClient, q *coordinatorv1.JobRequest) *coordinatorv1.Job {
	t.Helper()
	r, err := c.SubmitJob(ctx, &coordinatorv1.SubmitJobRequest{Job: q, IdempotencyKey: q.GetKind().String()})
	must(t, err)
	for {
		j, err := c.GetJob(ctx, &coordinatorv1.GetJobRequest{Id: r.GetJob().GetId()})
		must(t, err)
		switch state := j.GetJob().GetState(); {
		case state == jobv1.JobState_JOB_STATE_COMPLETED:
			return j.GetJob()
		case state > jobv1.JobState_JOB_STATE_COMPLETED:
			t.Fatalf("%s: %s", state, j.GetJob().GetReason())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Rejections of well-formed requests by authorised callers: another epoch, another body under the
// same key or id, an unknown object, more than the stock or than the client's quota.
func TestSpecificRefusals(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	atParty, atCoordinator := start(t)
	jobs := coordinatorv1.NewCoordinatorServiceClient(atCoordinator.conns["client"])
	stock := stockv1.NewStockServiceClient(atCoordinator.conns["client"])
	tuples := tuplesv1.NewTuplesServiceClient(atParty.conns["client"])
	proposer := tuplesv1.NewTuplesServiceClient(atParty.conns["coordinator"])
	keys := keygenv1.NewKeygenServiceClient(atParty.conns["client"])
	keyJob := &coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS, Params: "insecure-8", Dim: 4, Purpose: jobv1.Purpose_PURPOSE_TRIPLES,
		Timeout: durationpb.New(time.Minute)}
	epoch := complete(ctx, t, jobs, keyJob).GetEpoch()
	scalars := &coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_SCALAR, Params: "insecure-8", Field: "p128", Dim: 1, Count: 8, Epoch: epoch,
		Purpose: jobv1.Purpose_PURPOSE_TRIPLES, Tenant: devnet.Tenant, Timeout: durationpb.New(time.Minute)}
	job := complete(ctx, t, jobs, scalars)

	class := &tuplesv1.Class{Tenant: devnet.Tenant, Kind: jobv1.Kind_KIND_SCALAR, Params: "insecure-8", Field: "p128"}
	ask := func(change func(q *stockv1.ReserveRequest)) (*tuplesv1.Reservation, error) {
		q := &stockv1.ReserveRequest{Class: proto.Clone(class).(*tuplesv1.Class), Count: 2, IdempotencyKey: "key"}
		change(q)
		r, err := stock.Reserve(ctx, q)
		return r.GetReservation(), err
	}
	two, err := ask(func(*stockv1.ReserveRequest) {})
	must(t, err)
	again, err := ask(func(*stockv1.ReserveRequest) {})
	if err != nil || again.GetId() != two.GetId() {
		t.Errorf("the same again: %v, %v", again, err)
	}
	other, err := ask(func(q *stockv1.ReserveRequest) { q.IdempotencyKey = "" })
	must(t, err)
	fetch := func(id string, from uint64) error {
		s, err := tuples.Fetch(ctx, &tuplesv1.FetchRequest{ReservationId: id, From: from})
		for err == nil {
			var r *tuplesv1.FetchResponse
			if r, err = s.Recv(); r.GetSha256() != nil {
				return nil
			}
		}
		return err
	}
	must(t, fetch(two.GetId(), 0))
	reserve := func(change func(q *stockv1.ReserveRequest)) func() error {
		return func() error { _, err := ask(change); return err }
	}
	propose := func(change func(r *tuplesv1.Reservation)) func() error {
		return func() error {
			r := proto.Clone(two).(*tuplesv1.Reservation)
			change(r)
			out, err := proposer.Propose(ctx, &tuplesv1.ProposeRequest{Reservations: []*tuplesv1.Reservation{r}})
			if err == nil && out.GetOutcomes()[0].GetCode() != "" {
				err = rpc.Errorf(rpc.Code(out.GetOutcomes()[0].GetCode()), "", "")
			}
			return err
		}
	}
	submit := func(key string, q *coordinatorv1.JobRequest, change func(q *coordinatorv1.JobRequest)) func() error {
		return func() error {
			q := proto.Clone(q).(*coordinatorv1.JobRequest)
			change(q)
			_, err := jobs.SubmitJob(ctx, &coordinatorv1.SubmitJobRequest{Job: q, IdempotencyKey: key})
			return err
		}
	}
	unknown := func(err error) func() error { return func() error { return err } }
	_, noJob := jobs.GetJob(ctx, &coordinatorv1.GetJobRequest{Id: "unknown"})
	_, noCancel := jobs.CancelJob(ctx, &coordinatorv1.CancelJobRequest{Id: "unknown"})
	_, noReservation := stock.GetReservation(ctx, &stockv1.GetReservationRequest{Id: "unknown"})
	_, noRelease := stock.Release(ctx, &stockv1.ReleaseRequest{Id: "unknown"})
	_, notHere := tuples.GetReservation(ctx, &tuplesv1.GetReservationRequest{Id: "unknown"})
	_, noEpoch := keys.RetireEpoch(ctx, &keygenv1.RetireEpochRequest{Epoch: epoch + 1})
	_, noRotation := jobs.RotateKeys(ctx, &coordinatorv1.RotateKeysRequest{Epoch: epoch + 1})
	_, noDrain := keys.DrainEpoch(ctx, &keygenv1.DrainEpochRequest{Epoch: epoch + 1})
	_, noKey := tuples.DrawMacKey(ctx, &tuplesv1.DrawMacKeyRequest{MacKeyId: "unknown", Purpose: tuplesv1.Purpose_PURPOSE_ONLINE})
	_, noReport := tuples.ReportFailedCheck(ctx, &tuplesv1.ReportFailedCheckRequest{MacKeyId: "unknown"})
	_, noBatch := tuples.Revoke(ctx, &tuplesv1.RevokeRequest{BatchIds: []string{"unknown"}})
	cases := map[string]specific{
		"reserve: another body":   {reserve(func(q *stockv1.ReserveRequest) { q.Count = 1 }), rpc.Conflict},
		"reserve: other clients":  {reserve(func(q *stockv1.ReserveRequest) { q.Clients = []string{"app"} }), rpc.Conflict},
		"reserve: another epoch":  {reserve(func(q *stockv1.ReserveRequest) { q.Epoch, q.IdempotencyKey = epoch+1, "" }), rpc.OutOfStock},
		"reserve: too many":       {reserve(func(q *stockv1.ReserveRequest) { q.Count, q.IdempotencyKey = 100000, "" }), rpc.OutOfStock},
		"reserve: another tenant": {reserve(func(q *stockv1.ReserveRequest) { q.Class.Tenant = "others" }), rpc.Forbidden},
		"reserve: no kind":        {reserve(func(q *stockv1.ReserveRequest) { q.Class.Kind = jobv1.Kind_KIND_KEYS }), rpc.Invalid},
		"reserve: long lease":     {reserve(func(q *stockv1.ReserveRequest) { q.Lease = durationpb.New(1000 * time.Hour) }), rpc.Invalid},
		"reserve: key of zeros":   {reserve(func(q *stockv1.ReserveRequest) { q.IdempotencyKey = "\x00" }), rpc.Invalid},
		"propose: another body":   {propose(func(r *tuplesv1.Reservation) { r.Ranges[0].Count-- }), rpc.Conflict},
		"propose: another epoch":  {propose(func(r *tuplesv1.Reservation) { r.Id, r.Epoch, r.Ranges[0].First = "new", epoch+1, 6 }), rpc.Invalid},
		"propose: taken":          {propose(func(r *tuplesv1.Reservation) { r.Id = "new" }), rpc.Taken},
		"propose: ended": {propose(func(r *tuplesv1.Reservation) {
			r.Id, r.Ranges[0].First, r.Lease = "new", 6, timestamppb.New(time.Now().Add(-time.Hour))
		}), rpc.Expired},
		"submit: another body":   {submit("KIND_SCALAR", scalars, func(q *coordinatorv1.JobRequest) { q.Count++ }), rpc.Conflict},
		"submit: another set":    {submit("new", scalars, func(q *coordinatorv1.JobRequest) { q.Params = "unknown" }), rpc.PolicyRefused},
		"submit: another tenant": {submit("", scalars, func(q *coordinatorv1.JobRequest) { q.Tenant = "others" }), rpc.Forbidden},
		"estimate: another tenant": {func() error {
			q := proto.Clone(scalars).(*coordinatorv1.JobRequest)
			q.Tenant = "others"
			_, err := jobs.EstimateJob(ctx, &coordinatorv1.EstimateJobRequest{Job: q})
			return err
		}, rpc.Forbidden},
		"submit: another epoch": {submit("new", scalars, func(q *coordinatorv1.JobRequest) { q.Epoch = epoch + 1 }), rpc.NotFound},
		"estimate: another epoch": {func() error {
			q := proto.Clone(scalars).(*coordinatorv1.JobRequest)
			q.Epoch = epoch + 1
			_, err := jobs.EstimateJob(ctx, &coordinatorv1.EstimateJobRequest{Job: q})
			return err
		}, rpc.NotFound},
		"submit: no epoch":  {submit("new", scalars, func(q *coordinatorv1.JobRequest) { q.Epoch = 0 }), rpc.Invalid},
		"fetch: unknown":    {func() error { return fetch("unknown", 0) }, rpc.NotFound},
		"fetch: beyond":     {func() error { return fetch(two.GetId(), 2) }, rpc.Invalid},
		"fetch: over quota": {func() error { return fetch(other.GetId(), 0) }, rpc.OverQuota},
		"get job: unknown":  {unknown(noJob), rpc.NotFound},
		"watch job: unknown": {func() error {
			s, err := jobs.WatchJob(ctx, &coordinatorv1.WatchJobRequest{Id: "unknown"})
			if err == nil {
				_, err = s.Recv()
			}
			return err
		}, rpc.NotFound},
		"cancel job: unknown":            {unknown(noCancel), rpc.NotFound},
		"get reservation: unknown":       {unknown(noReservation), rpc.NotFound},
		"release: unknown":               {unknown(noRelease), rpc.NotFound},
		"get reservation there: unknown": {unknown(notHere), rpc.NotFound},
		"retire: another epoch":          {unknown(noEpoch), rpc.NotFound},
		"rotate: another epoch":          {unknown(noRotation), rpc.NotFound},
		"drain: another epoch":           {unknown(noDrain), rpc.NotFound},
		"draw: unknown key":              {unknown(noKey), rpc.NotFound},
		"report: unknown key":            {unknown(noReport), rpc.NotFound},
		"revoke: unknown batch":          {unknown(noBatch), rpc.NotFound},
	}
	session := &jobv1.SessionRef{JobId: job.GetId(), Ordinal: job.GetOrdinal()}
	more(ctx, t, atParty, session, epoch, cases)
	for name, c := range cases {
		if err := c.call(); code(err) != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	must(t, fetch(two.GetId(), 1)) // the rejected calls do not affect it
	complains(t, cases)
}
