package coordinator

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
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
	return r.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put([]byte(j.GetId()), v) })
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
			if err != nil {
				return fmt.Errorf("coordinator: the record of job %s is damaged: %w", k, err)
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
	return r.db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(ofRotations).Put(binary.BigEndian.AppendUint64(nil, x.GetEpoch()), v)
	})
}

// rotations returns all rotations by the epoch that they replace.
func (r *records) rotations() (map[uint64]*coordinatorv1.Rotation, error) {
	by := map[uint64]*coordinatorv1.Rotation{}
	err := r.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(ofRotations).ForEach(func(_, v []byte) error {
			x := new(coordinatorv1.Rotation)
			if err := proto.Unmarshal(v, x); err != nil {
				return fmt.Errorf("coordinator: the record of a rotation is damaged: %w", err)
			}
			by[x.GetEpoch()] = x
			return nil
		})
	})
	return by, err
}
