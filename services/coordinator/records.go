package coordinator

import (
	"encoding/binary"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/proto"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
)

// records keeps jobs on disk, in the order of submission.
type records struct{ db *bbolt.DB }

type record struct {
	job *coordinatorv1.Job
	key string // client and idempotency key
}

var bucket = []byte("jobs")

func openRecords(path string) (*records, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: 2 * time.Second})
	if err != nil {
		return nil, fmt.Errorf("coordinator: %s: %w (is another coordinator running?)", path, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bucket)
		return err
	})
	return &records{db}, err
}

func (r *records) close() { r.db.Close() }

// put writes a job. A value is the length of the key (4 bytes), the key, and the job.
func (r *records) put(j *coordinatorv1.Job, key string) error {
	b, err := proto.Marshal(j)
	if err != nil {
		return err
	}
	v := binary.LittleEndian.AppendUint32(nil, uint32(len(key)))
	v = append(append(v, key...), b...)
	return r.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put([]byte(j.GetId()), v) })
}

func (r *records) all() (list []record, err error) {
	err = r.db.View(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucket).ForEach(func(k, v []byte) error {
			if len(v) < 4 || int(binary.LittleEndian.Uint32(v)) > len(v)-4 {
				return fmt.Errorf("coordinator: the record of job %s is damaged", k)
			}
			n := int(binary.LittleEndian.Uint32(v))
			rec := record{job: new(coordinatorv1.Job), key: string(v[4 : 4+n])}
			if err := proto.Unmarshal(v[4+n:], rec.job); err != nil {
				return fmt.Errorf("coordinator: the record of job %s is damaged: %w", k, err)
			}
			list = append(list, rec)
			return nil
		})
	})
	return list, err
}
