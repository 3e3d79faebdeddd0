package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	mkclient "github.com/lodge-mpc/lodge/clients/go/multikey"
	"github.com/lodge-mpc/lodge/services/config"
	"github.com/lodge-mpc/lodge/services/devnet"
	"github.com/lodge-mpc/lodge/services/multikey"
	"github.com/lodge-mpc/lodge/services/rpc"
)

// mkDecrypting is what `lodge mk decrypt` does.
type mkDecrypting struct {
	cluster, client, roster string
	json                    bool
	epoch                   uint64
	parties                 []string
}

// mkDecryptReport is its outcome.
type mkDecryptReport struct {
	File    string     `json:"file"`
	Epoch   uint64     `json:"epoch"`
	Bits    string     `json:"bits"` // digits
	Quorums [][]string `json:"quorums"`
}

func mkDecryptCommand() *cobra.Command {
	o := &mkDecrypting{}
	cmd := &cobra.Command{
		Use:   "decrypt FILE",
		Short: "Have the owners of the keys that ciphertexts are under decrypt them",
		Long: "Have all parties whose keys are in ciphertexts decrypt these together, and write the bits. Without one of them nothing\n" +
			"is decrypted. It is secure against parties that follow the protocol: each holds the request against its own rules,\n" +
			"which must say allow_multikey, and refuses it unless its operator has set allow_passive_threshold. Masks are those of\n" +
			"a group, an epoch of a set for multi-key ciphertexts: `lodge keys generate` makes one, `lodge keys masks` the masks.\n\n" +
			"All parties are called as one client that each of them knows by the same name, with the permission decrypt: --client\n" +
			"names its configuration.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&o.cluster, "cluster", "", clusterUsage)
	f.StringVar(&o.client, "client", "", "configuration of the client (default CLUSTER/clients/"+devnet.App+".yaml)")
	f.StringVar(&o.roster, "roster", "", "roster (default CLUSTER/roster.yaml)")
	f.BoolVar(&o.json, "json", false, "write JSON")
	f.Uint64Var(&o.epoch, "epoch", 0, "epoch of the group (default: the newest that is active)")
	f.StringSliceVar(&o.parties, "quorum", nil, "who decrypts, the owners among them, by name or index (default: as few as can)")
	completeNames(cmd, "quorum", func() []string { return (&operator{cluster: o.cluster, client: o.client}).completeParties() })
	return cmd
}

func (o *mkDecrypting) run(cmd *cobra.Command, file string) error {
	dir := clusterDir(o.cluster)
	or := func(path string, elements ...string) string {
		if path != "" {
			return path
		}
		return filepath.Join(append([]string{dir}, elements...)...)
	}
	roster, err := config.LoadRoster(or(o.roster, rosterFile))
	if err != nil {
		return absent(err)
	}
	context, err := multikey.ContextOf(roster.Multikey)
	if err != nil {
		return err
	}
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	groups, err := mkclient.Read(in, context.Scheme)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	client, err := lodge.Load(or(o.client, "clients", devnet.App+".yaml"))
	if errors.Is(err, os.ErrNotExist) {
		return rpc.Errorf(rpc.NotFound, "name a directory that `lodge init` wrote with --cluster, or a client's configuration with --client", "%v", err)
	}
	if err != nil {
		return plain(err)
	}
	c, err := mkclient.Dial(client)
	if err != nil {
		return plain(err)
	}
	defer c.Close()
	names := c.Threshold.Parties()
	quorum, err := partyList("quorum", o.parties, names)
	if err != nil {
		return err
	}
	q := &mkclient.Decryption{Ciphertexts: mkclient.Ciphertexts(groups), Epoch: o.epoch}
	for _, p := range quorum {
		q.Quorum = append(q.Quorum, int(p))
	}
	got, err := c.Decrypt(cmd.Context(), q)
	if err != nil {
		return plain(err)
	}
	r := &mkDecryptReport{File: file, Epoch: got.Epoch, Bits: digitsOf(got.Bits), Quorums: [][]string{}}
	for _, q := range got.Quorums {
		r.Quorums = append(r.Quorums, strings.Fields(nameList(q, names)))
	}
	if o.json {
		return writeIndented(cmd.OutOrStdout(), r)
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), r.Bits)
	return err
}
