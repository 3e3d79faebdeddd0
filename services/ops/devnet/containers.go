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

	"github.com/lodge-mpc/lodge/services/host/config"
)

// In containers every process has its own directory with all files that it needs and no secrets of
// other processes. Processes reach each other by their names, coordinator, p0 and so on, while
// clients use Options.Host. Therefore the processes' roster contains other addresses than the
// clients'. The roster's hash does not cover addresses, but identities and keys.

// metricsPort is the port at which processes in containers serve metrics to their shared network.
const metricsPort = 7190

// site is where a process listens, and the additional name in its certificate.
type site struct {
	listen, metrics, health string
	console                 string // empty: none
	hosts                   []string
}

// at returns where a process listens. Outside containers, everything else is as in further.
func (o *Options) at(name, address string, further site) site {
	if !o.Containers {
		further.listen, further.hosts = address, []string{o.Host}
		return further
	}
	_, port, _ := net.SplitHostPort(address)
	console := further.console
	if _, pages, err := net.SplitHostPort(console); err == nil {
		console = ":" + pages // published at the same port of the host, which links name
	}
	return site{console: console, listen: ":" + port, metrics: ":" + strconv.Itoa(metricsPort), health: config.HealthAddress, hosts: []string{name, o.Host}}
}

// apart gives every process the authority and the roster, with the addresses between containers.
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

// Further directories of a cluster in containers: the clients' files are kept in one directory and
// copied to the other, which is outside the containers.
const (
	keptDir    = "clients"
	outsideDir = "host"
)

// ErrInstalled reports directories that contain something other than the requested cluster.
var ErrInstalled = errors.New("devnet: the volumes hold another cluster, or only a part of one")

// ErrOtherStore reports a cluster whose stores are in another place than requested. Stores cannot
// be moved: a new store would not know which tuples were delivered to whom.
var ErrOtherStore = errors.New("devnet: the cluster has its stores in another place")

// Install installs a cluster for containers in the directories under dir, which must exist and are
// mounted from elsewhere: one for each process, "clients", and "host", which receives a copy of
// "clients". If the cluster is installed already, Install changes only that copy. If an earlier
// call was interrupted, it starts again. As root, it gives the files of processes to user, and the
// copy to the owner of its directory. With Options.Postgres the database's directories must exist
// too, and Install gives them to the database's user.
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

// installed reports whether the cluster of these processes is installed. If not, it may be
// overwritten, because none of its processes has run.
func installed(dir string, processes []string, postgres bool) (bool, error) {
	kept, err := config.LoadRoster(filepath.Join(dir, keptDir, "roster.yaml")) // this file is written last
	if errors.Is(err, fs.ErrNotExist) {
		for _, name := range append(slices.Clone(processes), databaseDir) {
			if hasRun(filepath.Join(dir, name)) {
				return false, fmt.Errorf("%w: %s has run, but the certificates of its clients are missing", ErrInstalled, name)
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

// hasRun reports whether a process has been started on its directory.
func hasRun(dir string) bool {
	for _, trace := range []string{"data", "vault", "audit", "PG_VERSION"} {
		if _, err := os.Stat(filepath.Join(dir, trace)); !errors.Is(err, fs.ErrNotExist) {
			return true
		}
	}
	return false
}

// sameStores returns an error unless the parties' stores are in the requested place and an existing
// database is still present.
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
			return fmt.Errorf("%w: %s has run, but the database is missing", ErrInstalled, name)
		}
	}
	return nil
}

// install makes a cluster and moves its parts to their places. The files by which installed
// recognises a cluster come last.
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

// closeDir makes a directory accessible only to its owner. Root without all of its capabilities can
// take over a directory and give it away, but can change only its own.
func closeDir(dir string) error {
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() == 0o700 {
		return err
	}
	return errors.Join(give(dir, self()), os.Chmod(dir, 0o700))
}

// move moves the files under a name into the directory of that name, accessible only to the owner.
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

// put copies files and subdirectories to a directory, accessible only to the owner. Unchanged files
// are kept. The roster is copied last.
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

// order sorts the roster after all other files.
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

// give changes the owner of a file or directory if necessary. Only root can do that.
func give(path string, whose owner) error {
	if os.Geteuid() != 0 || ownerOf(path) == whose {
		return nil
	}
	return os.Chown(path, whose.user, whose.group)
}

// owner holds the user and the group that own files.
type owner struct{ user, group int }

// self returns the user and group of this process.
func self() owner { return owner{os.Geteuid(), os.Getegid()} }
