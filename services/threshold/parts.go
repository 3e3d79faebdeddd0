package threshold

import (
	"crypto/hpke"
	"encoding/binary"
	"fmt"
)

// wordBytes is the size of a part of a plaintext in the ledger.
const wordBytes = 8

func getWord(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }

func putWord(b []byte, w uint64) []byte { return binary.LittleEndian.AppendUint64(b, w) }

// seal encrypts an answer for its recipient, if the caller named one.
func (s *Service) seal(q *request, answer []byte) ([]byte, error) {
	if q.to == nil {
		return answer, nil
	}
	defer clear(answer)
	sealed, err := hpke.Seal(q.to, hpke.HKDFSHA256(), hpke.AES256GCM(), q.asked.Info(uint32(s.Sessions.Self)), answer)
	if err != nil {
		return nil, fmt.Errorf("threshold: an answer could not be sealed: %w", err)
	}
	return sealed, nil
}
