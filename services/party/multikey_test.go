package party

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/engine/multikey"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	service "github.com/lodge-mpc/lodge/services/multikey"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// withContext has the roster pin a context of multi-key ciphertexts.
func withContext(t *testing.T) func(i int, f *config.PartyFile) {
	t.Helper()
	c, err := service.ContextOf(&config.Multikey{Set: "insecure-M8-32", Seed: config.StandardSeed})
	if err != nil {
		t.Fatal(err)
	}
	hash := c.Hash()
	pin := config.ParamsPin{Name: c.Name, Hash: hex.EncodeToString(hash[:])}
	return func(_ int, f *config.PartyFile) {
		f.Roster.Multikey = &config.Multikey{Set: c.Name, Seed: config.StandardSeed}
		f.Policy.Params = append(f.Policy.Params, pin)
	}
}

// published waits until a party's registry says something of keys.
func (n *network) published(x *node, key []byte, when func(k *multikeyv1.PublishedKey) bool) {
	n.t.Helper()
	ctx := n.context()
	for {
		m, err := multikeyv1.NewRegistryServiceClient(x.app).ListPublished(ctx, &multikeyv1.ListPublishedRequest{})
		if err != nil {
			n.t.Fatal(err)
		}
		for _, k := range m.GetKeys() {
			if bytes.Equal(k.GetKey(), key) && when(k) {
				return
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Keys that a party makes come to the others by themselves, and so does that it has destroyed them.
func TestMultikeyRegistry(t *testing.T) {
	n := newNetwork(t, withContext(t))
	owner := multikeyv1.NewKeysServiceClient(n.nodes[1].client)
	made, err := owner.MakeKeys(n.context(), &multikeyv1.MakeKeysRequest{RequestId: make([]byte, 16)})
	if err != nil {
		t.Fatal(err)
	}
	key := made.GetKeys().GetKey()
	for _, x := range n.nodes {
		n.published(x, key, func(k *multikeyv1.PublishedKey) bool {
			return k.GetPresent() && k.GetState() == "current" && k.GetOwner() == 1 && k.GetVersion() == 1
		})
	}
	stream, err := multikeyv1.NewRegistryServiceClient(n.nodes[2].app).GetPublished(n.context(), &multikeyv1.GetPublishedRequest{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	m, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	in, err := n.nodes[0].party.multikey.Receive(made.GetKeys().GetOwner(), m.GetHeader())
	if err != nil {
		t.Fatal(err)
	}
	for m, err = stream.Recv(); err == nil; m, err = stream.Recv() {
		if err := in.Put(int(m.GetIndex()), m.GetChunk()); err != nil {
			t.Fatal(err)
		}
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if _, err := in.Finish(multikey.KeyID(key)); err != nil {
		t.Fatal(err)
	}
	if _, err := owner.DestroyKeys(n.context(), &multikeyv1.DestroyKeysRequest{Version: 1, Reason: "a test"}); err != nil {
		t.Fatal(err)
	}
	for _, x := range n.nodes {
		n.published(x, key, func(k *multikeyv1.PublishedKey) bool { return k.GetState() == "revoked" && !k.GetPresent() })
	}
	stream, err = multikeyv1.NewRegistryServiceClient(n.nodes[2].app).GetPublished(n.context(), &multikeyv1.GetPublishedRequest{Key: key})
	if err == nil {
		_, err = stream.Recv()
	}
	refused(t, err, rpc.RetiredKey)
	_, err = multikeyv1.NewRegistryServiceClient(n.nodes[0].app).Announce(n.context(), &multikeyv1.AnnounceRequest{})
	refused(t, err, rpc.Forbidden)
}

// A party whose roster pins no context says so, and starts.
func TestNoMultikeyContext(t *testing.T) {
	cluster, err := devnet.Write(t.TempDir()+"/net", devnet.Options{Parties: 2, Params: []string{set}, Dev: true, Insecure: true})
	if err != nil {
		t.Fatal(err)
	}
	f, err := config.LoadParty(cluster.Parties[0])
	if err != nil {
		t.Fatal(err)
	}
	p, err := newParty(f, "test", slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if p.published != nil {
		t.Error("there is a registry")
	}
	p.published.Changed()
	p.published.Run(t.Context())
}

// A client has a party compute with bits that two others have encrypted; evaluators of that party
// compute the rotations.
func TestMultikeyEvaluation(t *testing.T) {
	context, m := withContext(t), newFarm(t)
	n := newNetwork(t, func(i int, f *config.PartyFile) {
		context(i, f)
		f.Limits.Idle, f.Limits.Compute = config.Duration(20*time.Second), config.Duration(time.Minute)
		if i == 2 {
			f.Evaluators.TLS.CA = m.authority
			f.Evaluators.Processes = []config.Evaluator{m.start(0, f), m.start(1, f)}
		}
	})
	upAt(n.nodes[2], 2)
	netlist := []byte("1 3\n2 1 1\n1 1\n2 1 0 1 2 XOR\n")
	params, crs := n.nodes[0].party.multikey.Hash(), n.nodes[0].party.multikey.CRS()
	h := &multikeyv1.EvaluationHeader{RequestId: make([]byte, 16), ParamsHash: params[:], CrsDigest: crs[:], NetlistBytes: uint64(len(netlist))}
	body := netlist
	for i := range 2 {
		keys := multikeyv1.NewKeysServiceClient(n.nodes[i].client)
		made, err := keys.MakeKeys(n.context(), &multikeyv1.MakeKeysRequest{RequestId: make([]byte, 16)})
		if err != nil {
			t.Fatal(err)
		}
		n.published(n.nodes[2], made.GetKeys().GetKey(), (*multikeyv1.PublishedKey).GetPresent)
		bit, err := keys.Encrypt(n.context(), &multikeyv1.EncryptRequest{Count: 1, Bits: []byte{1}})
		if err != nil {
			t.Fatal(err)
		}
		body = append(body, bit.GetBatch()...)
		h.Inputs = append(h.Inputs, &multikeyv1.InputGroup{Form: multikeyv1.InputForm_INPUT_FORM_BATCH, Count: 1, Keys: [][]byte{made.GetKeys().GetKey()}})
	}
	client := multikeyv1.NewEvaluationServiceClient(n.nodes[2].app)
	submit, err := client.Submit(n.context())
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*multikeyv1.SubmitRequest{{Header: h}, {Chunk: body}} {
		if err := submit.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := submit.CloseAndRecv(); err != nil {
		t.Fatal(err)
	}
	watch, err := client.WatchJob(n.context(), &multikeyv1.WatchJobRequest{RequestId: h.GetRequestId()})
	if err != nil {
		t.Fatal(err)
	}
	var job *multikeyv1.EvaluationJob
	for {
		m, err := watch.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		job = m.GetJob()
	}
	if job.GetState() != multikeyv1.EvaluationState_EVALUATION_STATE_DONE || len(job.GetResults()) != 1 || len(job.GetResults()[0].GetKeys()) != 2 {
		t.Errorf("the job is %v", job)
	}
	families, err := n.nodes[2].party.metrics.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	for _, f := range families {
		if f.GetName() == "lodge_evaluator_requests_total" {
			asked += len(f.GetMetric()) // of two evaluators, each with the outcome "ok"
		}
	}
	if asked != 2 {
		t.Errorf("evaluators have %d outcomes, and two answers are compared\n%s", asked, n.nodes[2].log.String())
	}
	_, err = multikeyv1.NewEvaluationServiceClient(n.nodes[2].coordinator).ListJobs(n.context(), &multikeyv1.ListJobsRequest{})
	refused(t, err, rpc.Forbidden)
}

// A party rejects a roster with a set that it does not pin, or with an insecure set that it does
// not allow.
func TestContextIsPinned(t *testing.T) {
	cluster, err := devnet.Write(t.TempDir()+"/net", devnet.Options{Parties: 2, Params: []string{"M11-4"}, Dev: true, Multikey: "insecure-M8-32"})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	for says, change := range map[string]func(f *config.PartyFile){
		"is insecure":                func(*config.PartyFile) {},
		"policy.params does not pin": func(f *config.PartyFile) { f.Policy.Params = f.Policy.Params[:1] },
		"has the hash":               func(f *config.PartyFile) { f.Policy.Params[1].Hash = f.Policy.Params[0].Hash },
		`unknown set "M99-1"`:        func(f *config.PartyFile) { f.Policy.Params[1].Name = "M99-1" },
	} {
		f, err := config.LoadParty(cluster.Parties[0])
		if err != nil {
			t.Fatal(err)
		}
		change(f)
		if p, err := newParty(f, "test", log); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want an error with %q: %v", says, err)
			if err == nil {
				p.close()
			}
		}
	}
}
