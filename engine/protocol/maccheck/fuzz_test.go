package maccheck

import (
	"bytes"
	"errors"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

// If a peer replaces one of its values by any other bytes, the check fails or names the peer.
func FuzzMessages(f *testing.F) {
	field := testField(f, "p64")
	names := []string{step + "/open", step + "/z/open"}
	honest := make([][]byte, len(names))
	out := deal(f, field, 2, 3).run(roundtest.Record())
	for i, name := range names {
		frames := out.Recording.Frames(1, 0, name)
		honest[i] = frames[0]
		zero, over := make([]byte, len(honest[i])), bytes.Repeat([]byte{0xff}, len(honest[i]))
		for _, data := range [][]byte{honest[i], honest[i][1:], append(bytes.Clone(honest[i]), 0), zero, over, nil} {
			f.Add(i == 1, data)
		}
	}
	f.Fuzz(func(t *testing.T, z bool, data []byte) {
		i := 0
		if z {
			i = 1
		}
		err := deal(t, field, 2, 3).run(roundtest.Cheat(1, byzantine.New()), roundtest.Rewrite(1, names[i], roundtest.Payload(data))).Errors[0]
		if same := bytes.Equal(data, honest[i]); (err == nil) != same {
			t.Fatalf("%s: %v", names[i], err)
		}
		var blame *round.Blame
		var abort *round.Abort
		if err != nil && !(errors.As(err, &blame) && blame.Party == 1) && !(errors.As(err, &abort) && (abort.Check == CheckMAC || abort.Check == CheckZero)) {
			t.Errorf("%s: %v", names[i], err)
		}
	})
}
