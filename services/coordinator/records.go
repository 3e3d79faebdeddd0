package coordinator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store"
)

// records persists jobs in the order of submission.
type records struct{ db *bbolt.DB }

type record struct {
	job *coordinatorv1.Job
	key string // client and idempotency key
}

var (
	bucket      = []byte("jobs")
	ofRotations = []byte("rotations")
)

// openTime limits the wait for another coordinator to close the records.
const openTime = 2 * time.Second

func openRecords(path string) (*records, error) {
	//lodge:check coordinator/verify-file [run=TestDamagedJobs] a damaged page makes bbolt panic when the coordinator starts
	if err := store.VerifyFile(path, openTime, string(bucket), string(ofRotations)); err != nil {
		return nil, fmt.Errorf("coordinator: %w", err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: openTime})
	if err != nil {
		return nil, fmt.Errorf("coordinator: %s: %w (is another coordinator running?)", path, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucket, ofRotations} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
	return &records{db}, err
}

func (r *records) close() { r.db.Close() }

// damaged gives an error of damaged records its code and the next step. Other errors stay as they
// are.
func damaged(err error) error {
	//lodge:check coordinator/damaged [run=TestDamagedJobs] damaged records look like an internal error, without the next step
	if errors.Is(err, store.ErrDamaged) {
		return rpc.Errorf(rpc.CheckFailed, "keep a copy of data_dir, check its disk, and start with an empty data_dir: "+
			"see docs/operations/losing-the-coordinator.md", "%v", err)
	}
	return err
}

// encodeRecord encodes the length of the key (4 bytes), the key, and the job.
func encodeRecord(r record) ([]byte, error) {
	v := binary.LittleEndian.AppendUint32(nil, uint32(len(r.key)))
	return proto.MarshalOptions{}.MarshalAppend(append(v, r.key...), r.job)
}

func decodeRecord(v []byte) (record, error) {
	//lodge:check coordinator/job/record [run=Fuzz] a damaged record crashes the coordinator
	if len(v) < 4 || int64(binary.LittleEndian.Uint32(v)) > int64(len(v)-4) {
		return record{}, errors.New("the key is truncated")
	}
	n := int(binary.LittleEndian.Uint32(v))
	rec := record{job: new(coordinatorv1.Job), key: string(v[4 : 4+n])}
	return rec, proto.Unmarshal(v[4+n:], rec.job)
}

// put writes a job.
func (r *records) put(j *coordinatorv1.Job, key string) error {
	v, err := encodeRecord(record{job: j, key: key})
	if err != nil {
		return err
	}
	return r.write(bucket, j.GetId(), v)
}

func (r *records) write(bucket []byte, key string, value []byte) error {
	return r.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put([]byte(key), value) })
}

// drop deletes jobs.
func (r *records) drop(ids []string) error {
	return r.db.Update(func(tx *bbolt.Tx) error {
		for _, id := range ids {
			if err := tx.Bucket(bucket).Delete([]byte(id)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *records) all() (list []record, err error) {
	err = r.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucket).ForEach(func(k, v []byte) error {
			rec, err := decodeRecord(v)
			//lodge:check coordinator/job/record-key [drop=rec.job.GetId() != string(k)] [run=TestDamagedJobs] a job's damaged record takes the place of another job
			if err != nil || rec.job.GetId() != string(k) {
				return errors.Join(fmt.Errorf("coordinator: %w: job %q", store.ErrDamaged, k), err)
			}
			list = append(list, rec)
			return nil
		})
	})
	return list, err
}

// putRotation writes a rotation.
func (r *records) putRotation(x *coordinatorv1.Rotation) error {
	v, err := proto.Marshal(x)
	if err != nil {
		return err
	}
	return r.write(ofRotations, string(binary.BigEndian.AppendUint64(nil, x.GetEpoch())), v)
}

// rotations returns all rotations by the epoch that they replace.
func (r *records) rotations() (map[uint64]*coordinatorv1.Rotation, error) {
	by := map[uint64]*coordinatorv1.Rotation{}
	err := r.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(ofRotations).ForEach(func(_, v []byte) error {
			x := new(coordinatorv1.Rotation)
			if err := proto.Unmarshal(v, x); err != nil {
				return fmt.Errorf("coordinator: %w: a rotation: %w", store.ErrDamaged, err)
			}
			by[x.GetEpoch()] = x
			return nil
		})
	})
	return by, err
}
