package devnet

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/lodge-mpc/lodge/services/config"
)

// In containers every process has a directory of its own, with everything that it needs and no secret of another. They
// call each other by their names, coordinator, p0 and so on, where clients call Options.Host: the roster is another one
// for them, with other addresses. Its hash does not bind addresses, but who is called, by identity and key.

// metricsPort is where processes in containers serve metrics, to the network that they share.
const metricsPort = 7190

// site is where a process listens, and what its certificate names beside its identity.
type site struct {
	listen, metrics, health string
	hosts                   []string
}

func (o *Options) at(name, address string) site {
	if !o.Containers {
		return site{listen: address, hosts: []string{o.Host}}
	}
	_, port, _ := net.SplitHostPort(address)
	return site{listen: ":" + port, metrics: ":" + strconv.Itoa(metricsPort), health: config.HealthAddress, hosts: []string{name, o.Host}}
}

// apart gives every process the authority and the roster, with the addresses among containers.
func (w *writer) apart(r *config.Roster) {
	inside := &config.Roster{Coordinator: r.Coordinator, Parties: slices.Clone(r.Parties), Multikey: r.Multikey}
	move := func(address *string, name string) {
		_, port, _ := net.SplitHostPort(*address)
		*address = net.JoinHostPort(name, port)
	}
	names := []string{config.CoordinatorName}
	move(&inside.Coordinator.Address, config.CoordinatorName)
	for i := range inside.Parties {
		m := &inside.Parties[i]
		move(&m.Address, m.Name)
		names = append(names, m.Name)
	}
	for _, name := range names {
		w.yaml(name+"/roster.yaml", inside)
		w.file(name+"/ca.pem", w.ca.PEM())
	}
	w.shared = ""
}

// The directories of a cluster in containers beside those of its processes: what clients need is kept in one and put into
// the other, which is outside.
const (
	keptDir    = "clients"
	outsideDir = "host"
)

// ErrInstalled refuses directories that hold something else than the cluster that is wanted.
var ErrInstalled = errors.New("devnet: the volumes hold another cluster, or not all of one")

// ErrOtherStore refuses a cluster whose stores are elsewhere than is wanted. A store cannot be moved: another one would
// have forgotten what went to whom.
var ErrOtherStore = errors.New("devnet: the cluster has its stores elsewhere")

// Install puts a cluster for containers into the directories under dir, which are there and are mounted from elsewhere: one
// for each process, which gets it to itself, "clients", and "host", which gets a copy of that. Where a cluster is there
// already it changes nothing but that copy, and where an earlier call was interrupted it begins anew. As root it gives the
// files of processes to a user, and the copy to whoever owns the directory. With Options.Postgres the database's
// directories are there, too, and become its user's.
func Install(dir string, o Options, user int) (made bool, err error) {
	o.Containers = true
	processes := []string{config.CoordinatorName}
	for i := range o.Parties {
		processes = append(processes, partyName(i))
	}
	wanted := slices.Concat(processes, []string{keptDir, outsideDir})
	if o.Postgres {
		wanted = append(wanted, beginDir, databaseDir)
	}
	for _, name := range wanted {
		if _, err := os.ReadDir(filepath.Join(dir, name)); err != nil {
			return false, fmt.Errorf("devnet: a directory to put files into: %w", err)
		}
	}
	there, err := installed(dir, processes, o.Postgres)
	if err != nil {
		return false, err
	}
	if !there {
		if err := install(dir, processes, o, owner{user, user}); err != nil {
			return false, err
		}
	}
	outside := filepath.Join(dir, outsideDir)
	return !there, put(filepath.Join(dir, keptDir), outside, ownerOf(outside))
}

// installed says whether the cluster of these processes is there. It may be overwritten if not: none of them has run.
func installed(dir string, processes []string, postgres bool) (bool, error) {
	kept, err := config.LoadRoster(filepath.Join(dir, keptDir, "roster.yaml")) // which was put there last
	if errors.Is(err, fs.ErrNotExist) {
		for _, name := range append(slices.Clone(processes), databaseDir) {
			if hasRun(filepath.Join(dir, name)) {
				return false, fmt.Errorf("%w: %s has run, and the certificates of its clients are gone", ErrInstalled, name)
			}
		}
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if len(kept.Parties) != len(processes)-1 {
		return false, fmt.Errorf("%w: %d parties, not %d", ErrInstalled, len(kept.Parties), len(processes)-1)
	}
	for _, name := range processes {
		r, err := config.LoadRoster(filepath.Join(dir, name, "roster.yaml"))
		if err != nil {
			return false, fmt.Errorf("%w: %s: %w", ErrInstalled, name, err)
		}
		if r.Hash() != kept.Hash() {
			return false, fmt.Errorf("%w: %s has another roster", ErrInstalled, name)
		}
	}
	return true, sameStores(dir, processes[1:], postgres)
}

// hasRun says whether a process has been started on its directory.
func hasRun(dir string) bool {
	for _, trace := range []string{"data", "vault", "audit", "PG_VERSION"} {
		if _, err := os.Stat(filepath.Join(dir, trace)); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// sameStores sees that the parties' stores are where they are wanted, and that the database is there if one was.
func sameStores(dir string, parties []string, postgres bool) error {
	places := map[bool]string{false: "the volumes of the parties", true: "PostgreSQL"}
	for _, name := range parties {
		f, err := config.LoadParty(filepath.Join(dir, name, "party.yaml"))
		if err != nil {
			return fmt.Errorf("%w: %s: %w", ErrInstalled, name, err)
		}
		if is := f.Vault.PostgresDSNFile != ""; is != postgres {
			return fmt.Errorf("%w: in %s, not in %s", ErrOtherStore, places[is], places[postgres])
		}
		if postgres && hasRun(filepath.Join(dir, name)) && !hasRun(filepath.Join(dir, databaseDir)) {
			return fmt.Errorf("%w: %s has run, and the database is gone", ErrInstalled, name)
		}
	}
	return nil
}

// install makes a cluster and puts its parts where they belong, those by which it is found last.
func install(dir string, processes []string, o Options, to owner) (err error) {
	stage, err := os.MkdirTemp("", "lodge-install-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage)) }()
	if _, err := Write(stage, o); err != nil {
		return err
	}
	if o.Postgres {
		database := owner{DatabaseUser, DatabaseUser}
		volume := filepath.Join(dir, databaseDir)
		if err := errors.Join(closeDir(volume), give(volume, database), move(stage, dir, beginDir, database)); err != nil {
			return err
		}
	}
	for _, name := range processes {
		if err := move(stage, dir, name, to); err != nil {
			return err
		}
	}
	return put(stage, filepath.Join(dir, keptDir), self())
}

// closeDir closes a directory to all but its owner. Root without all of its capabilities can take a directory and give it
// away, and change only its own.
func closeDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() == 0o700 {
		return err
	}
	return errors.Join(give(dir, self()), os.Chmod(dir, 0o700))
}

// move puts what is under a name into the directory of that name, for its owner alone.
func move(stage, dir, name string, to owner) error {
	volume := filepath.Join(dir, name)
	if err := closeDir(volume); err != nil {
		return err
	}
	if err := put(filepath.Join(stage, name), volume, to); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(stage, name))
}

// put copies files, and those in directories, to a directory for its owner alone. Those that are there and the same stay.
// The roster comes last.
func put(from, to string, whose owner) error {
	list, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	slices.SortStableFunc(list, func(a, b fs.DirEntry) int { return cmp.Compare(order(a), order(b)) })
	for _, e := range list {
		source, target := filepath.Join(from, e.Name()), filepath.Join(to, e.Name())
		if e.IsDir() {
			if err := os.MkdirAll(target, 0o700); err != nil {
				return err
			}
			err = put(source, target, whose)
		} else {
			err = putFile(source, target, whose)
		}
		if err != nil {
			return err
		}
	}
	return give(to, whose)
}

// order has the roster after all others.
func order(e fs.DirEntry) int {
	if e.Name() == "roster.yaml" {
		return 1
	}
	return 0
}

func putFile(source, target string, whose owner) error {
	b, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	if old, err := os.ReadFile(target); err == nil && bytes.Equal(old, b) {
		return give(target, whose)
	}
	f, err := os.CreateTemp(filepath.Dir(target), ".new-")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = give(f.Name(), whose)
	}
	if err == nil {
		err = os.Rename(f.Name(), target)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// give makes a file or directory another's, where that is not so already. Only root can.
func give(path string, whose owner) error {
	if os.Geteuid() != 0 || ownerOf(path) == whose {
		return nil
	}
	return os.Chown(path, whose.user, whose.group)
}

// owner is whose files are.
type owner struct{ user, group int }

// self is who this process runs as.
func self() owner { return owner{os.Geteuid(), os.Getegid()} }
