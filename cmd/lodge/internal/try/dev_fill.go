package try

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	mkclient "github.com/lodge-mpc/lodge/clients/go/multikey"
	"github.com/lodge-mpc/lodge/cmd/internal/cluster"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/proto/wire"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// devDim is the default block dimension of keys for matrices. Larger keys take longer to make.
const devDim = 8

// The shapes of matrices and convolutions in stock, which the examples of the Python client use: 64
// patients with 30 features, and an image of 8 by 8 pixels with four kernels.
var (
	devMatrix      = &jobv1.Shape{Rows: 64, Inner: 30, Columns: 1}
	devConvolution = &jobv1.Shape{Convolution: &jobv1.Convolution{
		Channels: 1, Height: 8, Width: 8, Outputs: 4, KernelHeight: 3, KernelWidth: 3, StrideHeight: 1, StrideWidth: 1,
	}}
)

// devMasks is the number of masks in stock for each quorum, and devQuorums the largest number of
// quorums of each size that have masks.
const (
	devMasks   = 1000
	devQuorums = 10
)

// fill makes the keys and the stock that are missing. It calls first when the stock has scalar
// triples.
func (o *devOptions) fill(ctx context.Context, c *cluster.Cluster, r *DevReport, first func(*DevReport) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	list, err := keygenv1.NewKeygenServiceClient(c.Clients[0]).ListEpochs(ctx, &keygenv1.ListEpochsRequest{})
	if err != nil {
		return rpc.FromError(err)
	}
	dim, err := o.tripleKeys(ctx, c, r, list.GetEpochs())
	if err != nil {
		return err
	}
	wanted, err := o.policies(c, dim)
	if err != nil {
		return err
	}
	scalar := min(1, len(wanted)) // none if --stock is 0
	if r.Available, err = stockUp(ctx, c, wanted[:scalar], o.given("stock")); err != nil {
		return err
	}
	if err := first(r); err != nil || o.minimal {
		return err
	}
	if err := thresholdKeys(ctx, c, r, list.GetEpochs()); err != nil {
		return err
	}
	for i := 0; i < len(r.Keys) && o.stock > 0; i++ {
		if err := addMasks(&wanted, c, r.Keys[i].Params); err != nil {
			return err
		}
	}
	_, err = stockUp(ctx, c, wanted[scalar:], false)
	return err
}

// newest returns the newest active epoch of keys of a set, or nil.
func newest(list []*keygenv1.Epoch, set string) (found *keygenv1.Epoch) {
	for _, e := range list {
		if e.GetState() == keygenv1.EpochState_EPOCH_STATE_ACTIVE && e.GetParams() == set && e.GetEpoch() > found.GetEpoch() {
			found = e
		}
	}
	return found
}

// tripleKeys makes keys for tuples if there are none. It returns their block dimension.
func (o *devOptions) tripleKeys(ctx context.Context, c *cluster.Cluster, r *DevReport, list []*keygenv1.Epoch) (dim uint32, err error) {
	if e := newest(list, c.Net.Params); e != nil {
		if r.Epoch, dim = e.GetEpoch(), e.GetDim(); o.dim > dim && o.given("dim") {
			c.Progress.Note("--dim %d applies to new keys, but epoch %d exists: lodge jobs submit --kind keys --dim %[1]d --cluster %[3]s", o.dim, r.Epoch, o.dir)
		}
		return dim, nil
	}
	j, err := c.Job(ctx, &coordinatorv1.JobRequest{
		Kind: jobv1.Kind_KIND_KEYS, Params: c.Net.Params, Dim: o.dim, Purpose: jobv1.Purpose_PURPOSE_TRIPLES,
	})
	r.Epoch = j.GetEpoch()
	return o.dim, err
}

// thresholdKeys makes what is missing for the other pinned sets: threshold keys, the parties' own
// keys for multi-key ciphertexts, and the group that decrypts these. Two parties have no threshold
// keys, because these need an honest majority.
func thresholdKeys(ctx context.Context, c *cluster.Cluster, r *DevReport, list []*keygenv1.Epoch) error {
	if len(c.Net.Sets) == 1 {
		c.Progress.Note("the cluster in %s has no sets for threshold keys: remove it for a new one with all sets", c.Net.Dir)
	}
	for _, name := range c.Net.Sets[1:] {
		set, err := plan.Lookup(name)
		if err != nil {
			return err
		}
		if !set.Threshold || !set.Multikey && len(c.Net.Parties) < 3 {
			continue
		}
		threshold := 0 // the largest
		if set.Multikey {
			threshold = 1
			if err := ownKeys(ctx, c); err != nil {
				return err
			}
		}
		e := newest(list, name).GetEpoch()
		if e == 0 {
			j, err := c.ThresholdKeys(ctx, name, threshold)
			if err != nil {
				return err
			}
			e = j.GetEpoch()
		}
		r.Keys = append(r.Keys, DevEpoch{e, name})
	}
	return nil
}

// ownKeys makes each party generate its own keys, unless it has some, and waits until the first
// party has those of all.
func ownKeys(ctx context.Context, c *cluster.Cluster) error {
	config, err := c.Client(devnet.Operator)
	if err != nil {
		return err
	}
	client, err := mkclient.Dial(config)
	if err != nil {
		return cli.FromClient(err)
	}
	defer client.Close()
	var group errgroup.Group
	group.SetLimit(2) // key generation uses all processors
	for i := range c.Net.Parties {
		group.Go(func() error {
			list, err := client.ListKeys(ctx, i)
			if err != nil || slices.ContainsFunc(list, func(k *mkclient.OwnKeys) bool { return k.State == "active" && k.Pinned }) {
				return err
			}
			c.Progress.Say("party %d makes its own keys", i)
			_, err = client.MakeKeys(ctx, i)
			return err
		})
	}
	return cli.FromClient(group.Wait())
}

// policies returns the wanted stock of tuples: of every kind that the engine can make here, scalar
// triples first. It is empty if --stock is 0.
func (o *devOptions) policies(c *cluster.Cluster, dim uint32) (list []*stockv1.Policy, err error) {
	set, err := params.Lookup(c.Net.Params)
	if err != nil || o.stock == 0 {
		return nil, err
	}
	add := func(kind jobv1.Kind, shape *jobv1.Shape, high uint64, priority, owner uint32) {
		p := &stockv1.Policy{
			Class: &tuplesv1.Class{Tenant: devnet.Tenant, Kind: kind, Params: set.Name, Field: o.field, Shape: shape, InputParty: owner},
			Low:   max(1, high/2), High: high, Batch: min(high, 1<<20), Priority: priority,
		}
		_, err := triple.NewPlan(set, o.field, len(c.Net.Parties), wire.Kind(kind), wire.Shape(shape), 0, int(p.Batch), int(max(1, dim)))
		if err == nil || len(list) == 0 { // the coordinator explains why there are no scalar triples
			list = append(list, p)
		}
	}
	add(jobv1.Kind_KIND_SCALAR, nil, o.stock, 50, 0)
	if o.minimal {
		return list, nil
	}
	few := max(1, o.stock/8)
	add(jobv1.Kind_KIND_BIT, nil, 2*o.stock, 20, 0) // a rounding takes about 100
	for party := range c.Net.Parties {
		add(jobv1.Kind_KIND_INPUT, nil, max(1, o.stock/2), 30, uint32(party))
	}
	for _, kind := range []jobv1.Kind{jobv1.Kind_KIND_SQUARE, jobv1.Kind_KIND_RANDOM, jobv1.Kind_KIND_INVERSE} {
		add(kind, nil, few, 10, 0)
	}
	if dim > 1 {
		add(jobv1.Kind_KIND_MATRIX, devMatrix, 1, 1, 0)
		add(jobv1.Kind_KIND_CONVOLUTION, devConvolution, 1, 0, 0)
	}
	return list, nil
}

// addMasks adds policies for the masks of keys of a set.
func addMasks(list *[]*stockv1.Policy, c *cluster.Cluster, name string) error {
	set, err := plan.Lookup(name)
	if err != nil {
		return err
	}
	n := len(c.Net.Parties)
	least := (n-1)/2 + 1 // holders of shares with the largest threshold
	most := least
	if set.Multikey {
		m, err := multikey.Lookup(name)
		if err != nil {
			return err
		}
		least, most = 2, min(n, m.Parties)
	}
	for size := least; size <= most; size++ {
		all := cluster.Quorums(n, size, devQuorums)
		for _, quorum := range all[:min(len(all), devQuorums)] {
			q := make([]uint32, size)
			for i, party := range quorum {
				q[i] = uint32(party)
			}
			*list = append(*list, &stockv1.Policy{
				Class: &tuplesv1.Class{Kind: jobv1.Kind_KIND_MASKS, Params: name, Quorum: q, Form: jobv1.MaskForm_MASK_FORM_EXACT},
				Low:   devMasks / 2, High: devMasks, Batch: devMasks, Priority: 40,
			})
		}
	}
	return nil
}

// stockUp sets the policies that are missing, or with replace all of them. It waits until the stock
// has some of every class, except matrices and convolutions, which take longer, and returns how
// many of the first class are available.
func stockUp(ctx context.Context, c *cluster.Cluster, wanted []*stockv1.Policy, replace bool) (available uint64, err error) {
	client := stockv1.NewStockServiceClient(c.Operator)
	have, err := client.ListPolicies(ctx, &stockv1.ListPoliciesRequest{})
	if err != nil {
		return 0, rpc.FromError(err)
	}
	awaited := map[*tuplesv1.Class]bool{}
	for _, p := range wanted {
		known := slices.ContainsFunc(have.GetPolicies(), func(x *stockv1.Policy) bool { return proto.Equal(x.GetClass(), p.GetClass()) })
		if !known || replace {
			if _, err := client.SetPolicy(ctx, &stockv1.SetPolicyRequest{Policy: p}); err != nil {
				return 0, rpc.FromError(err)
			}
		}
		if p.GetClass().GetShape() == nil {
			awaited[p.GetClass()] = true
		}
	}
	if len(wanted) == 0 {
		return 0, nil
	}
	stream, err := client.WatchStock(ctx, &stockv1.WatchStockRequest{})
	if err != nil {
		return 0, rpc.FromError(err)
	}
	for first, said := wanted[0].GetClass(), len(awaited)+1; len(awaited) > 0; {
		r, err := stream.Recv()
		if err != nil {
			return 0, rpc.FromError(err)
		}
		for class := range awaited {
			n, held := availableOf(r.GetStock(), class)
			if n > 0 {
				delete(awaited, class)
			}
			if class == first && held != "" {
				c.Progress.Say("nothing is made: %s", held)
			}
			if class == first {
				available = n
			}
		}
		if len(awaited) < said { // otherwise jobs wait for each other
			said = len(awaited)
			c.Progress.Say("the parties make tuples: %d of %d classes are missing", said, len(wanted))
		}
	}
	return available, nil
}

// availableOf returns the number of tuples or masks of a class in stock. If there are none, it
// returns the reason why none are made.
func availableOf(stock []*stockv1.Stock, class *tuplesv1.Class) (n uint64, held string) {
	for _, s := range stock {
		if proto.Equal(s.GetClass(), class) {
			n += s.GetAvailable()
			held = s.GetHeldBack()
		}
	}
	return n, held
}
