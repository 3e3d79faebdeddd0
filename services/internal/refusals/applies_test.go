package refusals

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	accusationsv1 "github.com/lodge-mpc/lodge/proto/lodge/accusations/v1"
	decryptionv1 "github.com/lodge-mpc/lodge/proto/lodge/decryption/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	popkv1 "github.com/lodge-mpc/lodge/proto/lodge/popk/v1"
	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	service "github.com/lodge-mpc/lodge/services/multikey"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// specific is a call that is rejected because of its content, and the expected code.
type specific struct {
	call func() error
	want rpc.Code
}

// Reasons why a kind of rejection does not apply to a method.
const (
	noTuples = "does not give tuples to a client"
	noEpoch  = "its request has no epoch"
	noName   = "its request does not refer to an existing object"
	noKey    = "does not record anything under a name that the caller chooses"
	anyEpoch = "accepts any epoch, whether it exists or not"
	perItem  = "responds for each name, and does not reject the call"
	perNew   = "the name is that of a new object"
	awaited  = "waits for the session to be started"
)

// applies names, for each method, the cases in TestSpecificRefusals: over quota, another epoch, an
// unknown reservation (or job, session, batch, key), and a repeated request with another body; or
// the reason why there is no case. TestRefusals covers unauthorised callers, cancelled calls and
// expired deadlines for every method.
var applies = map[string][4]string{
	"lodge.keygen.v1.KeygenService/Start":                   {noTuples, "KeygenService/Start: another epoch", perNew, "KeygenService/Start: another body"},
	"lodge.keygen.v1.KeygenService/GetStatus":               {noTuples, noEpoch, "KeygenService/GetStatus: unknown", noKey},
	"lodge.keygen.v1.KeygenService/Watch":                   {noTuples, noEpoch, "KeygenService/Watch: unknown", noKey},
	"lodge.keygen.v1.KeygenService/Cancel":                  {noTuples, noEpoch, "KeygenService/Cancel: unknown", noKey},
	"lodge.keygen.v1.KeygenService/Activate":                {noTuples, noEpoch, "KeygenService/Activate: unknown", noKey},
	"lodge.keygen.v1.KeygenService/ListEpochs":              {noTuples, noEpoch, noName, noKey},
	"lodge.keygen.v1.KeygenService/GetPublicKey":            {noTuples, "public key: another epoch", noName, noKey},
	"lodge.keygen.v1.KeygenService/DrainEpoch":              {noTuples, "drain: another epoch", noName, noKey},
	"lodge.keygen.v1.KeygenService/RetireEpoch":             {noTuples, "retire: another epoch", noName, noKey},
	"lodge.popk.v1.PopkService/Start":                       {noTuples, "PopkService/Start: another epoch", perNew, "PopkService/Start: another body"},
	"lodge.popk.v1.PopkService/GetStatus":                   {noTuples, noEpoch, "PopkService/GetStatus: unknown", noKey},
	"lodge.popk.v1.PopkService/Watch":                       {noTuples, noEpoch, "PopkService/Watch: unknown", noKey},
	"lodge.popk.v1.PopkService/Cancel":                      {noTuples, noEpoch, "PopkService/Cancel: unknown", noKey},
	"lodge.popk.v1.PopkService/Activate":                    {noTuples, noEpoch, "PopkService/Activate: unknown", noKey},
	"lodge.popk.v1.PopkService/Prove":                       {noTuples, "prove: another epoch", noName, noKey},
	"lodge.popk.v1.PopkService/Verify":                      {noTuples, "verify: another epoch", noName, noKey},
	"lodge.triples.v1.TriplesService/Start":                 {noTuples, "TriplesService/Start: another epoch", perNew, "TriplesService/Start: another body"},
	"lodge.triples.v1.TriplesService/GetStatus":             {noTuples, noEpoch, "TriplesService/GetStatus: unknown", noKey},
	"lodge.triples.v1.TriplesService/Watch":                 {noTuples, noEpoch, "TriplesService/Watch: unknown", noKey},
	"lodge.triples.v1.TriplesService/Cancel":                {noTuples, noEpoch, "TriplesService/Cancel: unknown", noKey},
	"lodge.triples.v1.TriplesService/Activate":              {noTuples, noEpoch, "TriplesService/Activate: unknown", noKey},
	"lodge.triples.v1.TriplesService/Estimate":              {noTuples, "estimate there: another epoch", perNew, noKey},
	"lodge.multikey.v1.KeysService/MakeKeys":                {noTuples, noEpoch, perNew, noKey},
	"lodge.multikey.v1.KeysService/ListKeys":                {noTuples, noEpoch, noName, noKey},
	"lodge.multikey.v1.KeysService/DestroyKeys":             {noTuples, noEpoch, "destroy multi-key keys: unknown", noKey},
	"lodge.multikey.v1.KeysService/Encrypt":                 {noTuples, noEpoch, "encrypt: unknown", noKey},
	"lodge.multikey.v1.RegistryService/Announce":            {noTuples, noEpoch, noName, noKey},
	"lodge.multikey.v1.RegistryService/ListPublished":       {noTuples, noEpoch, noName, noKey},
	"lodge.multikey.v1.RegistryService/GetPublished":        {noTuples, noEpoch, "published keys: unknown", noKey},
	"lodge.multikey.v1.EvaluationService/Estimate":          {noTuples, noEpoch, "estimate an evaluation: unknown keys", noKey},
	"lodge.multikey.v1.EvaluationService/Submit":            {noTuples, noEpoch, "evaluation: unknown keys", noKey},
	"lodge.multikey.v1.EvaluationService/GetJob":            {noTuples, noEpoch, "evaluation: get unknown", noKey},
	"lodge.multikey.v1.EvaluationService/WatchJob":          {noTuples, noEpoch, "evaluation: watch unknown", noKey},
	"lodge.multikey.v1.EvaluationService/ListJobs":          {noTuples, noEpoch, noName, noKey},
	"lodge.multikey.v1.EvaluationService/CancelJob":         {noTuples, noEpoch, "evaluation: cancel unknown", noKey},
	"lodge.multikey.v1.EvaluationService/GetResult":         {noTuples, noEpoch, "evaluation: unknown result", noKey},
	"lodge.threshold.v1.ThresholdService/Start":             {noTuples, "ThresholdService/Start: another epoch", perNew, "ThresholdService/Start: another body"},
	"lodge.threshold.v1.ThresholdService/GetStatus":         {noTuples, noEpoch, "ThresholdService/GetStatus: unknown", noKey},
	"lodge.threshold.v1.ThresholdService/Watch":             {noTuples, noEpoch, "ThresholdService/Watch: unknown", noKey},
	"lodge.threshold.v1.ThresholdService/Cancel":            {noTuples, noEpoch, "ThresholdService/Cancel: unknown", noKey},
	"lodge.threshold.v1.ThresholdService/Activate":          {noTuples, noEpoch, "ThresholdService/Activate: unknown", noKey},
	"lodge.threshold.v1.ThresholdService/Estimate":          {noTuples, "estimate masks: another epoch", perNew, noKey},
	"lodge.threshold.v1.ThresholdService/ListKeys":          {noTuples, noEpoch, noName, noKey},
	"lodge.threshold.v1.ThresholdService/GetKeys":           {noTuples, "threshold keys: another epoch", noName, noKey},
	"lodge.threshold.v1.ThresholdService/Decrypt":           {noTuples, "threshold decryption: another epoch", noName, noKey},
	"lodge.threshold.v1.ThresholdService/ApproveDecryption": {noTuples, noEpoch, "approve: unknown", noKey},
	"lodge.threshold.v1.ThresholdService/ListApprovals":     {noTuples, noEpoch, noName, noKey},
	"lodge.decryption.v1.DecryptionService/DecryptShare":    {noTuples, "decrypt: another epoch", noName, noKey},
	"lodge.decryption.v1.DecryptionService/GetDecryption":   {noTuples, anyEpoch, noName, noKey},
	"lodge.linear.v1.LinearService/Multiply":                {noTuples, noEpoch, noName, noKey},
	"lodge.linear.v1.LinearService/Ask":                     {noTuples, noEpoch, perNew, noKey},
	"lodge.linear.v1.LinearService/Answer":                  {noTuples, noEpoch, perNew, noKey},
	"lodge.exchange.v1.ExchangeService/Exchange":            {noTuples, noEpoch, awaited, noKey},
	"lodge.status.v1.StatusService/GetStatus":               {noTuples, noEpoch, noName, noKey},
	"lodge.status.v1.StatusService/WatchStatus":             {noTuples, noEpoch, noName, noKey},
	"lodge.status.v1.StatusService/ListAuditEntries":        {noTuples, noEpoch, noName, noKey},
	"lodge.status.v1.StatusService/SetLogLevel":             {noTuples, noEpoch, noName, noKey},
	"lodge.console.v1.ConsoleService/CreateLink":            {noTuples, noEpoch, noName, noKey},
	"lodge.status.v1.ProbeService/ProbePeers":               {noTuples, noEpoch, noName, noKey},
	"lodge.status.v1.ProbeService/Probe":                    {noTuples, noEpoch, noName, noKey},
	"lodge.tuples.v1.TuplesService/Fetch":                   {"fetch: over quota", noEpoch, "fetch: unknown", noKey},
	"lodge.tuples.v1.TuplesService/GetReservation":          {noTuples, noEpoch, "get reservation there: unknown", noKey},
	"lodge.tuples.v1.TuplesService/ListReservations":        {noTuples, noEpoch, noName, noKey},
	"lodge.tuples.v1.TuplesService/ListBatches":             {noTuples, anyEpoch, noName, noKey},
	"lodge.tuples.v1.TuplesService/ListMacKeys":             {noTuples, noEpoch, noName, noKey},
	"lodge.tuples.v1.TuplesService/DrawMacKey":              {noTuples, noEpoch, "draw: unknown key", noKey},
	"lodge.tuples.v1.TuplesService/ReportFailedCheck":       {noTuples, noEpoch, "report: unknown key", noKey},
	"lodge.tuples.v1.TuplesService/Revoke":                  {noTuples, noEpoch, "revoke: unknown batch", noKey},
	"lodge.tuples.v1.TuplesService/Propose":                 {noTuples, "propose: another epoch", perNew, "propose: another body"},
	"lodge.tuples.v1.TuplesService/Withdraw":                {noTuples, noEpoch, perItem, noKey},
	"lodge.tuples.v1.TuplesService/Release":                 {noTuples, noEpoch, perItem, noKey},
	"lodge.tuples.v1.TuplesService/Acknowledge":             {noTuples, noEpoch, noName, noKey},
	"lodge.tuples.v1.TuplesService/Confirm":                 {noTuples, noEpoch, perItem, noKey},
	"lodge.coordinator.v1.CoordinatorService/SubmitJob":     {noTuples, "submit: another epoch", noName, "submit: another body"},
	"lodge.coordinator.v1.CoordinatorService/GetJob":        {noTuples, noEpoch, "get job: unknown", noKey},
	"lodge.coordinator.v1.CoordinatorService/WatchJob":      {noTuples, noEpoch, "watch job: unknown", noKey},
	"lodge.coordinator.v1.CoordinatorService/ListJobs":      {noTuples, noEpoch, noName, noKey},
	"lodge.coordinator.v1.CoordinatorService/CancelJob":     {noTuples, noEpoch, "cancel job: unknown", noKey},
	"lodge.coordinator.v1.CoordinatorService/RotateKeys":    {noTuples, "rotate: another epoch", noName, noKey},
	"lodge.coordinator.v1.CoordinatorService/ListEpochs":    {noTuples, noEpoch, noName, noKey},
	"lodge.coordinator.v1.CoordinatorService/EstimateJob":   {noTuples, "estimate: another epoch", noName, noKey},
	"lodge.stock.v1.StockService/Reserve":                   {noTuples, "reserve: another epoch", noName, "reserve: another body"},
	"lodge.stock.v1.StockService/GetReservation":            {noTuples, noEpoch, "get reservation: unknown", noKey},
	"lodge.stock.v1.StockService/ListReservations":          {noTuples, noEpoch, noName, noKey},
	"lodge.stock.v1.StockService/Release":                   {noTuples, noEpoch, "release: unknown", noKey},
	"lodge.stock.v1.StockService/GetStock":                  {noTuples, anyEpoch, noName, noKey},
	"lodge.stock.v1.StockService/WatchStock":                {noTuples, anyEpoch, noName, noKey},
	"lodge.stock.v1.StockService/ListPolicies":              {noTuples, noEpoch, noName, noKey},
	"lodge.stock.v1.StockService/SetPolicy":                 {noTuples, anyEpoch, noName, noKey},
	"lodge.stock.v1.StockService/DeletePolicy":              {noTuples, anyEpoch, noName, noKey},

	"lodge.accusations.v1.AccusationsService/ListAccusations": {noTuples, noEpoch, noName, noKey},
	"lodge.accusations.v1.AccusationsService/ListFailures":    {noTuples, noEpoch, noName, noKey},
	"lodge.accusations.v1.AccusationsService/GetEvidence":     {noTuples, noEpoch, "evidence: unknown", noKey},
	"lodge.accusations.v1.AccusationsService/ClearFailures":   {noTuples, noEpoch, noName, noKey},
	"lodge.accusations.v1.AccusationsService/Pardon":          {noTuples, noEpoch, "pardon: unknown", noKey},
	"lodge.accusations.v1.AccusationsService/Offer":           {noTuples, noEpoch, noName, noKey},
}

// fields returns the fields of a message and of its nested messages.
func fields(m protoreflect.MessageDescriptor, seen map[protoreflect.FullName]bool) (names []string) {
	if seen[m.FullName()] {
		return nil
	}
	seen[m.FullName()] = true
	for i := range m.Fields().Len() {
		f := m.Fields().Get(i)
		names = append(names, string(f.Name()))
		if f.Message() != nil {
			names = append(names, fields(f.Message(), seen)...)
		}
	}
	return names
}

// complains reports methods and kinds of rejections without a case, and reasons that contradict the
// requests.
func complains(t *testing.T, cases map[string]specific) {
	t.Helper()
	contradicts := map[string][]string{
		noEpoch: {"epoch"},
		noName:  {"id", "ids", "reservation_id", "job_id", "mac_key_id", "batch_ids"},
		noKey:   {"idempotency_key", "spec", "reservations"},
	}
	for name, m := range methods() {
		if strings.HasPrefix(name, evaluators) {
			continue
		}
		row, ok := applies[name]
		if !ok {
			t.Errorf("%s: say which rejections apply", name)
			continue
		}
		asks := fields(m.Input(), map[protoreflect.FullName]bool{})
		for _, cell := range row {
			if _, tested := cases[cell]; tested || slices.Contains([]string{noTuples, anyEpoch, perItem, perNew, awaited}, cell) {
				continue
			}
			words, reason := contradicts[cell]
			if !reason {
				t.Errorf("%s: there is no case %q", name, cell)
			}
			for _, word := range words {
				// Estimate requests an estimate for a session, and records none.
				if slices.Contains(asks, word) && !(cell == noKey && strings.HasSuffix(name, "/Estimate")) {
					t.Errorf("%s: %s, but there is %s", name, cell, word)
				}
			}
		}
	}
}

// more adds the cases of a party that are the same for several services.
func more(ctx context.Context, t *testing.T, at server, known *jobv1.SessionRef, epoch uint64, cases map[string]specific) {
	t.Helper()
	st, err := statusv1.NewStatusServiceClient(at.conns["client"]).GetStatus(ctx, &statusv1.GetStatusRequest{})
	must(t, err)
	all := methods()
	ask := func(caller, method string, q proto.Message) func() error {
		return func() error {
			m, wire := dynamicpb.NewMessage(all[method].Input()), []byte(nil)
			if wire, err = proto.Marshal(q); err == nil {
				err = proto.Unmarshal(wire, m)
			}
			must(t, err)
			return call(ctx, at.conns[caller], method, all[method], m)
		}
	}
	unknown := &jobv1.SessionRef{JobId: "unknown", Ordinal: 1}
	spec := func(ref *jobv1.SessionRef, p jobv1.Protocol, kind jobv1.Kind, epoch uint64) *jobv1.SessionSpec {
		s := &jobv1.SessionSpec{Ref: ref, Protocol: p, ProtocolVersion: job.ProtocolVersion, Params: "insecure-8", ParamsHash: st.GetParams()[0].GetHash(),
			RosterHash: st.GetRosterHash(), Kind: kind, Epoch: epoch, Purpose: jobv1.Purpose_PURPOSE_TRIPLES,
			Deadline: timestamppb.New(time.Now().Add(time.Minute))}
		switch {
		case p == jobv1.Protocol_PROTOCOL_THRESHOLD:
			s.Purpose, s.Count, s.Group, s.Form = jobv1.Purpose_PURPOSE_THRESHOLD, 1, []uint32{0, 1}, jobv1.MaskForm_MASK_FORM_EXACT
		case kind != jobv1.Kind_KIND_KEYS:
			s.Field, s.Dim, s.Count, s.Tenant = "p128", 1, 1, devnet.Tenant
		}
		return s
	}
	for service, s := range map[string]struct {
		prefix   string
		protocol jobv1.Protocol
		kind     jobv1.Kind
		epoch    uint64 // an invalid epoch
		want     rpc.Code
	}{
		"KeygenService":    {"lodge.keygen.v1.", jobv1.Protocol_PROTOCOL_KEYGEN, jobv1.Kind_KIND_KEYS, epoch, rpc.Conflict},
		"PopkService":      {"lodge.popk.v1.", jobv1.Protocol_PROTOCOL_POPK, jobv1.Kind_KIND_PROOF, epoch + 1, rpc.NotFound},
		"ThresholdService": {"lodge.threshold.v1.", jobv1.Protocol_PROTOCOL_THRESHOLD, jobv1.Kind_KIND_MASKS, epoch + 1, rpc.NotFound},
		"TriplesService":   {"lodge.triples.v1.", jobv1.Protocol_PROTOCOL_TRIPLES, jobv1.Kind_KIND_SCALAR, epoch + 1, rpc.NotFound},
	} {
		at := s.prefix + service + "/"
		cases[service+"/GetStatus: unknown"] = specific{ask("coordinator", at+"GetStatus", &jobv1.GetStatusRequest{Ref: unknown}), rpc.NotFound}
		cases[service+"/Watch: unknown"] = specific{ask("coordinator", at+"Watch", &jobv1.WatchRequest{Ref: unknown}), rpc.NotFound}
		cases[service+"/Cancel: unknown"] = specific{ask("coordinator", at+"Cancel", &jobv1.CancelRequest{Ref: unknown}), rpc.NotFound}
		cases[service+"/Activate: unknown"] = specific{ask("coordinator", at+"Activate", &jobv1.ActivateRequest{Ref: unknown}), rpc.NotFound}
		cases[service+"/Start: another epoch"] = specific{
			ask("coordinator", at+"Start", &jobv1.StartRequest{Spec: spec(unknown, s.protocol, s.kind, s.epoch)}), s.want}
		cases[service+"/Start: another body"] = specific{
			ask("coordinator", at+"Start", &jobv1.StartRequest{Spec: spec(known, s.protocol, s.kind, s.epoch)}), rpc.Conflict}
	}
	header := &popkv1.ProofHeader{Epoch: epoch + 1, Field: "p128", Ciphertexts: 1}
	cases["prove: another epoch"] = specific{ask("client", "lodge.popk.v1.PopkService/Prove", &popkv1.ProveRequest{Header: header}), rpc.NotFound}
	cases["verify: another epoch"] = specific{ask("client", "lodge.popk.v1.PopkService/Verify", &popkv1.VerifyRequest{Header: header}), rpc.NotFound}
	cases["decrypt: another epoch"] = specific{ask("client", "lodge.decryption.v1.DecryptionService/DecryptShare", &decryptionv1.DecryptShareRequest{
		Header: &decryptionv1.DecryptShareHeader{Epoch: epoch + 1, Field: "p128", Quorum: []uint32{0, 1, 2}}}), rpc.NotFound}
	const keys = "lodge.threshold.v1.ThresholdService/"
	cases["estimate masks: another epoch"] = specific{ask("coordinator", keys+"Estimate", &thresholdv1.EstimateRequest{
		Spec: spec(unknown, jobv1.Protocol_PROTOCOL_THRESHOLD, jobv1.Kind_KIND_MASKS, epoch+1)}), rpc.NotFound}
	cases["threshold keys: another epoch"] = specific{ask("client", keys+"GetKeys", &thresholdv1.GetKeysRequest{Epoch: epoch + 1}), rpc.NotFound}
	none := sha256.Sum256(nil)
	cases["threshold decryption: another epoch"] = specific{ask("client", keys+"Decrypt", &thresholdv1.DecryptRequest{Header: &thresholdv1.DecryptHeader{
		RequestId: make([]byte, 16), Epoch: epoch + 1, KeysDigest: none[:], Quorum: []uint32{0, 1}, Count: 1,
		Form: thresholdv1.CiphertextForm_CIPHERTEXT_FORM_LWE, CiphertextsDigest: none[:]}}), rpc.NotFound}
	cases["destroy multi-key keys: unknown"] = specific{ask("client", "lodge.multikey.v1.KeysService/DestroyKeys", &multikeyv1.DestroyKeysRequest{Version: 7}), rpc.NotFound}
	cases["encrypt: unknown"] = specific{ask("client", "lodge.multikey.v1.KeysService/Encrypt", &multikeyv1.EncryptRequest{Version: 7, Count: 1, Bits: []byte{1}}), rpc.NotFound}
	const evaluations = "lodge.multikey.v1.EvaluationService/"
	pinned, err := service.ContextOf(&config.Multikey{Set: "insecure-M8-32", Seed: config.StandardSeed})
	must(t, err)
	params, crs := pinned.Hash(), pinned.CRS()
	asked := &multikeyv1.EvaluationHeader{RequestId: make([]byte, 16), ParamsHash: params[:], CrsDigest: crs[:], NetlistBytes: 1, Inputs: []*multikeyv1.InputGroup{
		{Form: multikeyv1.InputForm_INPUT_FORM_BATCH, Count: 1, Keys: [][]byte{none[:]}}}}
	cases["estimate an evaluation: unknown keys"] = specific{ask("client", evaluations+"Estimate", &multikeyv1.EstimateRequest{Header: asked}), rpc.UnknownKey}
	cases["evaluation: unknown keys"] = specific{ask("client", evaluations+"Submit", &multikeyv1.SubmitRequest{Header: asked}), rpc.UnknownKey}
	cases["evaluation: get unknown"] = specific{ask("client", evaluations+"GetJob", &multikeyv1.GetJobRequest{RequestId: none[:16]}), rpc.NotFound}
	cases["evaluation: watch unknown"] = specific{ask("client", evaluations+"WatchJob", &multikeyv1.WatchJobRequest{RequestId: none[:16]}), rpc.NotFound}
	cases["evaluation: cancel unknown"] = specific{ask("client", evaluations+"CancelJob", &multikeyv1.CancelJobRequest{RequestId: none[:16]}), rpc.NotFound}
	cases["evaluation: unknown result"] = specific{ask("client", evaluations+"GetResult", &multikeyv1.GetResultRequest{ResultDigest: none[:]}), rpc.NotFound}
	cases["published keys: unknown"] = specific{ask("client", "lodge.multikey.v1.RegistryService/GetPublished", &multikeyv1.GetPublishedRequest{Key: none[:]}), rpc.UnknownKey}
	cases["approve: unknown"] = specific{ask("client", keys+"ApproveDecryption", &thresholdv1.ApproveDecryptionRequest{Request: none[:]}), rpc.NotFound}
	cases["public key: another epoch"] = specific{
		ask("client", "lodge.keygen.v1.KeygenService/GetPublicKey", &keygenv1.GetPublicKeyRequest{Epoch: epoch + 1}), rpc.NotFound}
	cases["evidence: unknown"] = specific{ask("client", "lodge.accusations.v1.AccusationsService/GetEvidence",
		&accusationsv1.GetEvidenceRequest{Id: "unknown"}), rpc.NotFound}
	cases["pardon: unknown"] = specific{ask("client", "lodge.accusations.v1.AccusationsService/Pardon",
		&accusationsv1.PardonRequest{Id: "unknown", Reason: "test"}), rpc.NotFound}
	cases["estimate there: another epoch"] = specific{ask("coordinator", "lodge.triples.v1.TriplesService/Estimate", &triplesv1.EstimateRequest{
		Spec: spec(unknown, jobv1.Protocol_PROTOCOL_TRIPLES, jobv1.Kind_KIND_SCALAR, epoch+1)}), rpc.NotFound}
}
